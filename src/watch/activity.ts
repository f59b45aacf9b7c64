import type { Clock } from '../core/clock.js';
import type { Change } from './change.js';
import type { WatcherStatus } from './watcher-status.js';

/** Counts what a watcher has done so far, and keeps the callers that wait for its looks. */
export class Activity {
  readonly #clock: Clock;
  /** A caller that waits until this many looks have ended. */
  #waiters: { readonly looks: number; readonly resolve: () => void }[] = [];
  #begun = 0;
  #isClosed = false;
  /** When the last look ended, monotonic ms; before the first one, the start. */
  #lastCheckTime: number | undefined;
  checks = 0;
  changes = 0;
  resyncs = 0;
  /** Epoch ms. */
  lastChangeAt: number | null = null;
  /** Epoch ms. */
  lastCheckAt: number | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Its part of the status. */
  status(): Pick<
    WatcherStatus,
    'checks' | 'changes' | 'resyncs' | 'lastChangeAt' | 'lastCheckAt' | 'sinceLastCheckMs'
  > {
    const { checks, changes, resyncs, lastChangeAt, lastCheckAt } = this;
    const time = this.#lastCheckTime;
    const sinceLastCheckMs = time === undefined ? null : this.#clock.monotonic() - time;
    return { checks, changes, resyncs, lastChangeAt, lastCheckAt, sinceLastCheckMs };
  }

  start(): void {
    this.#lastCheckTime = this.#clock.monotonic();
  }

  changed({ cause }: Change): void {
    this.lastChangeAt = this.#clock.now();
    this.changes += 1;
    if (cause === 'resync') this.resyncs += 1;
  }

  lookBegins(): void {
    this.#begun += 1;
  }

  lookEnds(): void {
    this.checks += 1;
    this.lastCheckAt = this.#clock.now();
    this.#lastCheckTime = this.#clock.monotonic();
    this.#release(this.checks);
  }

  /** Resolves when a look that begins after this call has ended. */
  newLook(): Promise<void> {
    return this.#until(this.#begun + 1);
  }

  /** Resolves when the current look, or if there is none the next one, has ended. */
  nextLook(): Promise<void> {
    return this.#until(this.checks + 1);
  }

  /** Releases all waiting callers. */
  close(): void {
    this.#isClosed = true;
    this.#release(Infinity);
  }

  #until(looks: number): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push({ looks, resolve }));
  }

  #release(looks: number): void {
    const waiters = this.#waiters;
    this.#waiters = waiters.filter((waiter) => waiter.looks > looks);
    for (const waiter of waiters) if (waiter.looks <= looks) waiter.resolve();
  }
}
