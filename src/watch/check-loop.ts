import type { Scope } from '../core/scope.js';
import { sharedTurn, type TurnTaker } from '../fs/shared-turn.js';

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
 * | state     | `request()`           | the turn comes | check ends                               |
 * |-----------|-----------------------|----------------|------------------------------------------|
 * | idle      | → requested           | –              | –                                        |
 * | requested | keep the better cause | → checking     | –                                        |
 * | checking  | remember the cause    | –              | → requested if there is one, else → idle |
 *
 * A resync that has something to find waits for one turn more: what was changed in this turn causes its event in the next
 * one, and only what no event reports is to be counted as found by a resync.
 */
export class CheckLoop<Cause extends string> implements TurnTaker {
  readonly #checker: Checker<Cause>;
  readonly #scope: Scope;
  #waiters = NOBODY;
  #cause: Cause | undefined;
  /** A resync that is requested has waited for a turn. */
  #hasWaited = false;
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
    // A hint explains a change better than a resync that happens to come at the same time.
    if (this.#cause === undefined || this.#cause === 'resync') this.#cause = cause;
    // After what the kernel reports in this turn, so that the six events of a swap lead to one check.
    if (!this.#checking) sharedTurn.request(this);
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
    const cause = this.#cause;
    this.#cause = undefined;
    if (cause === undefined) return;
    const isResync = cause === 'resync' && !this.#hasWaited;
    this.#hasWaited = false;
    if (!isResync) void this.#checkInTime(cause);
    else if (this.#checker.resyncAtOnce()) this.#resynced();
    else this.#wait(cause);
  }

  #resynced(): void {
    this.#begun += 1;
    this.#ended();
  }

  /** Takes another turn, unless a hint comes first. */
  #wait(cause: Cause): void {
    this.#hasWaited = true;
    this.request(cause);
  }

  async #checkInTime(cause: Cause): Promise<void> {
    this.#begun += 1;
    this.#checking = true;
    await this.#checker.checkBecause(cause);
    this.#checking = false;
    this.#ended();
  }

  #ended(): void {
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
