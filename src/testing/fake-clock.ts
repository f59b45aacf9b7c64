import { nextTurn } from '../core/scheduling/event-loop.js';
import { describe } from '../core/options/options.js';
import type { Clock, Scheduled } from '../core/ports/clock.js';

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

/**
 * A clock that moves only when a test advances it. Pass it as the `clock` option.
 *
 * ```ts
 * const clock = new FakeClock();
 * const watcher = new ResilientWatcher(path, { clock, backend });
 * await clock.advance(500); // everything due within 500 ms has run
 * ```
 */
export class FakeClock implements Clock {
  #wallOffset: number;
  #monotonic = 0;
  readonly #timers = new Set<Timer>();

  /** @param now where the wall clock starts, epoch ms; default 2024-01-01T00:00:00Z. */
  constructor(now = 1_704_067_200_000) {
    this.#wallOffset = now;
  }

  now(): number {
    return this.#wallOffset + this.#monotonic;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  /** The number of waiting timers. */
  get pending(): number {
    return this.#timers.size;
  }

  /** The delays until the waiting timers, ms, shortest first. */
  get delays(): number[] {
    return [...this.#timers].map((timer) => timer.at - this.#monotonic).sort((a, b) => a - b);
  }

  /** @throws {RangeError} for a delay that is not a finite number. */
  schedule(callback: () => void, delayMs: number): Scheduled {
    if (!Number.isFinite(delayMs)) throw new RangeError(`FakeClock: a delay must be finite, got ${delayMs}`);
    const timer: Timer = { at: this.#monotonic + Math.max(0, delayMs), callback };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  /**
   * Advances both clocks by `ms`. Fires the timers that become due, in order of their time and then of scheduling,
   * including timers set meanwhile, and lets promises settle after each one and at the end.
   * @throws {TypeError | RangeError} (rejects) for anything but a finite number that is not negative.
   */
  async advance(ms: number): Promise<void> {
    if (typeof ms !== 'number') {
      throw new TypeError(`FakeClock.advance: ms must be a number, got ${describe(ms)}`);
    }
    if (!Number.isFinite(ms) || ms < 0) {
      const message = `FakeClock.advance: ms must be finite and >= 0, got ${ms}; jump() sets the wall clock back`;
      throw new RangeError(message);
    }
    const end = this.#monotonic + ms;
    await settle();
    for (let due = this.#next(end); due; due = this.#next(end)) {
      this.#monotonic = Math.max(this.#monotonic, due.at);
      this.#timers.delete(due);
      due.callback();
      await settle();
    }
    this.#monotonic = end;
  }

  /**
   * Moves only the wall clock, in either direction, as an NTP step or a resume from suspend does. Fires no timers.
   */
  jump(ms: number): void {
    this.#wallOffset += ms;
  }

  #next(end: number): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) if (timer.at <= end && (!next || timer.at < next.at)) next = timer;
    return next;
  }
}

/** Waits two turns of the event loop: one for the queued work, one for the work that it queues. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) await nextTurn();
}
