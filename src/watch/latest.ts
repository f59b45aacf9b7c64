/**
 * A stream in which the newest value wins: a consumer that is slow gets one value for all that came meanwhile,
 * not a backlog.
 */
export class Latest<T> implements AsyncIterableIterator<T, undefined> {
  readonly #merge: (waiting: T, next: T) => T | undefined;
  readonly #onEnd: () => void;
  readonly #takers: ((result: IteratorResult<T, undefined>) => void)[] = [];
  #waiting: T | undefined;
  #ended = false;

  /** @param merge what one value and the next are together; undefined when they cancel out. */
  constructor(merge: (waiting: T, next: T) => T | undefined, onEnd: () => void) {
    this.#merge = merge;
    this.#onEnd = onEnd;
  }

  push(value: T): void {
    const taker = this.#takers.shift();
    if (taker) taker({ done: false, value });
    else this.#waiting = this.#waiting === undefined ? value : this.#merge(this.#waiting, value);
  }

  /** No value comes any more; one that waits can still be taken. */
  end(): void {
    this.#ended = true;
    for (const taker of this.#takers.splice(0)) taker({ done: true, value: undefined });
    this.#onEnd();
  }

  next(): Promise<IteratorResult<T, undefined>> {
    const value = this.#waiting;
    if (value !== undefined) {
      this.#waiting = undefined;
      return Promise.resolve({ done: false, value });
    }
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => this.#takers.push(resolve));
  }

  return(): Promise<IteratorResult<T, undefined>> {
    this.#waiting = undefined;
    this.end();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
