import type { Scope } from '../core/scope.js';
import { sharedTurn, type TurnTaker } from '../fs/shared-turn.js';
import { betterCause } from './change.js';

/** Does the checks. */
export interface Checker<Cause extends string> {
  /** Must not reject. */
  checkBecause(cause: Cause): Promise<void>;
  /** Does the check of a resync if nothing has changed, and says whether it has. */
  resyncAtOnce(): boolean;
}

/** Waits for a check. */
interface Waiter {
  readonly isReady: () => boolean;
  readonly resolve: () => void;
}

const NOBODY: readonly Waiter[] = [];

/**
 * Turns requests into checks, one at a time. All requests of one turn of the event loop lead to one check, and all
 * requests during a check lead to exactly one more.
 *
 * | state     | `request()`           | the turn comes                         | the check ends                           |
 * |-----------|-----------------------|----------------------------------------|------------------------------------------|
 * | idle      | → requested           | –                                      | –                                        |
 * | requested | keep the better cause | → checking                             | –                                        |
 * | checking  | remember the cause    | nothing: another check of the turn in  | → requested if there is one, else → idle |
 * |           |                       | which this one began had requested one |                                          |
 *
 * Every check of a request ends, whatever is requested meanwhile, so nobody waits for ever; and none is begun before the one
 * under way has ended, so a check that was requested in it, or in a call that it makes, begins after it.
 */
export class CheckLoop<Cause extends string> implements TurnTaker {
  readonly #checker: Checker<Cause>;
  readonly #scope: Scope;
  #waiters = NOBODY;
  #cause: Cause | undefined;
  #checking = false;
  #begun = 0;
  #done = 0;

  constructor(checker: Checker<Cause>, scope: Scope) {
    this.#checker = checker;
    this.#scope = scope;
  }

  get state(): 'idle' | 'requested' | 'checking' {
    if (this.#checking) return 'checking';
    return this.#cause === undefined ? 'idle' : 'requested';
  }

  /** The number of checks that have ended. */
  get checks(): number {
    return this.#done;
  }

  /** Requests a check. */
  request(cause: Cause): void {
    if (this.#scope.ended) return;
    this.#cause = betterCause(this.#cause ?? cause, cause);
    // After what the kernel reports in this turn, so that the six events of a swap lead to one check.
    if (!this.#checking) sharedTurn.request(this);
  }

  /** The cause of what a check has found that began because of `cause`: a hint during it explains it better than a resync. */
  explain(cause: Cause): Cause {
    return betterCause(cause, this.#cause);
  }

  /** Resolves when a check that began after this call has ended, or the scope has. */
  checkNow(cause: Cause): Promise<void> {
    const wanted = this.#begun + 1;
    this.request(cause);
    return this.#until(() => this.#done >= wanted);
  }

  /** Resolves when no check is requested or under way. */
  idle(): Promise<void> {
    return this.#until(() => this.state === 'idle');
  }

  /** Ends the loop, once the scope has ended, and resolves every `check()` and `idle()` that waits. */
  close(): void {
    sharedTurn.cancel(this);
    this.#cause = undefined;
    this.#release();
  }

  /** The turn that was requested has come. */
  onTurn(): void {
    if (this.#checking) return;
    const cause = this.#cause;
    this.#cause = undefined;
    if (cause === undefined) return;
    this.#begun += 1;
    this.#checking = true;
    if (cause === 'resync' && this.#checker.resyncAtOnce()) this.#ended();
    else void this.#check(cause);
  }

  async #check(cause: Cause): Promise<void> {
    await this.#checker.checkBecause(cause);
    this.#ended();
  }

  #ended(): void {
    this.#checking = false;
    this.#done += 1;
    this.#again();
    this.#release();
  }

  #again(): void {
    if (this.#cause !== undefined) this.request(this.#cause);
  }

  #until(isReady: () => boolean): Promise<void> {
    if (isReady() || this.#scope.ended) return Promise.resolve();
    return new Promise((resolve) => (this.#waiters = [...this.#waiters, { isReady, resolve }]));
  }

  #release(): void {
    if (this.#waiters.length === 0) return;
    const isOver = this.#scope.ended;
    const ready = this.#waiters.filter(({ isReady }) => isOver || isReady());
    this.#waiters =
      ready.length < this.#waiters.length ? this.#waiters.filter((each) => !ready.includes(each)) : NOBODY;
    for (const { resolve } of ready) resolve();
  }
}
