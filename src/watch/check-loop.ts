import type { Scope } from '../core/scope.js';
import { sharedTurn } from '../fs/shared-turn.js';

/**
 * Turns wishes to look into checks: one at a time. All wishes of one turn of the event loop make one check, and
 * all that come during a check make exactly one more.
 *
 * | state   | `request()`         | look begins | look ends                          |
 * |---------|---------------------|-------------|------------------------------------|
 * | resting | → wanted            | –           | –                                  |
 * | wanted  | keep the best cause | → looking   | –                                  |
 * | looking | note that, and why  | –           | → wanted if noted, else → resting  |
 */
export class CheckLoop {
  readonly #check: (cause: string) => Promise<void>;
  readonly #scope: Scope;
  readonly #waiters = new Set<{ readonly ready: () => boolean; readonly resolve: () => void }>();
  #cause: string | undefined;
  #cancelTurn: (() => void) | undefined;
  #checking = false;
  #begun = 0;
  #done = 0;

  /** @param look must not reject. */
  constructor(look: (cause: string) => Promise<void>, scope: Scope) {
    this.#check = look;
    this.#scope = scope;
  }

  /** How many looks have ended. */
  get checks(): number {
    return this.#done;
  }

  /** Wants a check. */
  request(cause: string): void {
    if (this.#scope.ended) return;
    // What somebody told us goes before what only the resync would have found.
    if (this.#cause === undefined || this.#cause === 'resync') this.#cause = cause;
    // After what the kernel has to say in this turn, so that the six events of a swap make one check.
    if (!this.#checking) this.#cancelTurn ??= sharedTurn.request(() => void this.#next());
  }

  /** Resolves when a check that began after this call has ended, or the scope has. */
  checkNow(cause: string): Promise<void> {
    const wanted = this.#begun + 1;
    this.request(cause);
    return this.#until(() => this.#done >= wanted);
  }

  /** Resolves when no check is wanted or under way. */
  idle(): Promise<void> {
    return this.#until(() => !this.#checking && this.#cause === undefined);
  }

  /** Ends it, once the scope has ended: nothing waits any more. */
  close(): void {
    this.#cancelTurn?.();
    this.#cause = undefined;
    this.#release();
  }

  async #next(): Promise<void> {
    const cause = this.#cause;
    this.#cancelTurn = undefined;
    this.#cause = undefined;
    if (cause === undefined) return;
    this.#checking = true;
    this.#begun += 1;
    await this.#check(cause);
    this.#checking = false;
    this.#done += 1;
    this.#again();
    this.#release();
  }

  #again(): void {
    if (this.#cause !== undefined) this.request(this.#cause);
  }

  #until(ready: () => boolean): Promise<void> {
    if (ready() || this.#scope.ended) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.add({ ready, resolve }));
  }

  #release(): void {
    for (const waiter of [...this.#waiters]) {
      if (!this.#scope.ended && !waiter.ready()) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }
}
