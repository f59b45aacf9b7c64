/**
 * Does work for the newest of what it is given, one run at a time, until a run has succeeded.
 *
 * | state      | `give()`             | its time is up | the run is done           | it is to be repeated      | `close()`         |
 * |------------|----------------------|----------------|---------------------------|---------------------------|-------------------|
 * | `idle`     | → `waiting`          | –              | –                         | –                         | → closed          |
 * | `waiting`  | merged               | → `running`    | –                         | –                         | → closed          |
 * | `running`  | is next, or merged   | –              | → `waiting` for the next, | → `waiting` for the next, | closed at its end |
 * |            |                      |                | otherwise `idle`          | otherwise `retrying`      |                   |
 * | `retrying` | → `waiting`          | → `running`    | –                         | –                         | → closed          |
 *
 * Closed, it is `idle` and ignores what it is given.
 */
import type { Clock, Scheduled } from '../ports/clock.js';
import { NextOutcome } from './outcome.js';

interface WorkerOptions<T> {
  readonly clock: Clock;
  /** Whether it keeps the process alive while it waits. */
  readonly persistent: boolean;
  /** What is left of two items that wait. */
  readonly merge: (earlier: T, newer: T) => T;
  /** How long it is `waiting` before the first run for an item, ms. */
  readonly restMs: () => number;
  /**
   * Does the work; must not reject.
   * @param attempt counts from 1 for each item.
   * @returns when to repeat it, ms; undefined: it is done.
   */
  readonly run: (item: T, attempt: number) => Promise<number | undefined>;
}

/** The state machine in the table at the top of this file. */
export class Worker<T> {
  readonly #options: WorkerOptions<T>;
  readonly #idle = new NextOutcome<void>();
  #state: 'idle' | 'waiting' | 'running' | 'retrying' = 'idle';
  #next: T | undefined;
  #timer: Scheduled | undefined;
  #isClosed = false;

  constructor(options: WorkerOptions<T>) {
    this.#options = options;
  }

  get state(): 'idle' | 'waiting' | 'running' | 'retrying' {
    return this.#state;
  }

  /** What no run has begun for. */
  get next(): T | undefined {
    return this.#next;
  }

  give(item: T): void {
    if (this.#isClosed) return;
    this.#next = this.#next === undefined ? item : this.#options.merge(this.#next, item);
    if (this.#state === 'idle' || this.#state === 'retrying') this.#wait();
  }

  /** Resolves as soon as it is idle. */
  async idle(): Promise<void> {
    if (this.#state !== 'idle') await this.#idle.promise;
  }

  /** Nothing is run from now on. Resolves when the run in progress has ended. */
  close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    if (this.#state !== 'running') this.#rest();
    return this.idle();
  }

  #wait(): void {
    this.#enter('waiting', this.#options.restMs(), () => {
      const item = this.#next as T;
      this.#next = undefined;
      this.#run(item, 1);
    });
  }

  #run(item: T, attempt: number): void {
    this.#state = 'running';
    void this.#options.run(item, attempt).then((delayMs) => {
      if (this.#isClosed) this.#rest();
      else if (this.#next !== undefined) this.#wait();
      else if (delayMs === undefined) this.#rest();
      else this.#enter('retrying', delayMs, () => this.#run(item, attempt + 1));
    });
  }

  #rest(): void {
    this.#state = 'idle';
    this.#idle.resolve();
  }

  #enter(state: 'waiting' | 'retrying', delayMs: number, leave: () => void): void {
    const { clock, persistent: ref } = this.#options;
    this.#state = state;
    this.#timer?.cancel();
    if (delayMs > 0) this.#timer = clock.schedule(leave, delayMs, { ref });
    else leave();
  }
}
