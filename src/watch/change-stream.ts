import { mergeChanges, type Change } from './change.js';

/**
 * Changes as an async iterator. A slow consumer does not cause a backlog: changes that it has not taken yet are
 * merged into one.
 */
export class ChangeStream implements AsyncIterableIterator<Change, undefined> {
  readonly #onEnd: () => void;
  readonly #takers: ((result: IteratorResult<Change, undefined>) => void)[] = [];
  #waiting: Change | undefined;
  #ended = false;

  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  push(change: Change): void {
    const taker = this.#takers.shift();
    if (taker) taker({ done: false, value: change });
    else this.#waiting = this.#waiting === undefined ? change : mergeChanges(this.#waiting, change);
  }

  /** Ends the stream; a change that is waiting can still be taken. */
  end(): void {
    this.#ended = true;
    for (const taker of this.#takers.splice(0)) taker({ done: true, value: undefined });
    this.#onEnd();
  }

  next(): Promise<IteratorResult<Change, undefined>> {
    const value = this.#waiting;
    if (value !== undefined) {
      this.#waiting = undefined;
      return Promise.resolve({ done: false, value });
    }
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => this.#takers.push(resolve));
  }

  return(): Promise<IteratorResult<Change, undefined>> {
    this.#waiting = undefined;
    this.end();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
