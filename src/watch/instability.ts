/**
 * A target that is replaced during every attempt to read it is checked again soon.
 *
 * | a check         | then                                                                                          |
 * |-----------------|-----------------------------------------------------------------------------------------------|
 * | did not succeed | another one after a delay that grows; once that lasts for `missingGraceMs`, it is `unreadable` |
 * | succeeded       | it is stable again, and this instability is over                                              |
 */
import { Backoff } from '../core/backoff.js';
import type { Clock, Scheduled } from '../core/clock.js';
import { TargetError } from '../fs/target-error.js';
import type { Random } from '../core/random.js';

/** The initial delay before an unstable target is checked again, ms. Doubled each time. */
const FIRST_RETRY_MS = 5;

/** The maximum of this delay, ms: a change is at most this late because the target was unstable before. */
const MAX_RETRY_MS = 1_000;

/** Options of an instability. */
interface InstabilityOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly persistent: boolean;
  readonly missingGraceMs: number;
}

/** The time in which no check succeeds, and when the next one begins. */
export class Instability {
  readonly #path: string;
  readonly #options: InstabilityOptions;
  readonly #delays: Backoff;
  #retry: Scheduled | undefined;
  /** Monotonic ms. */
  #since: number | undefined;

  /** @param path the watched path, for messages. */
  constructor(path: string, options: InstabilityOptions) {
    const { random } = options;
    this.#path = path;
    this.#options = options;
    this.#delays = new Backoff({ firstDelayMs: FIRST_RETRY_MS, maxDelayMs: MAX_RETRY_MS, random });
  }

  /**
   * A check did not succeed. Returns the error to report if that has lasted too long.
   * @param checkAgain called after the delay.
   */
  unstable(checkAgain: () => void): TargetError | undefined {
    const { clock, persistent, missingGraceMs } = this.#options;
    const now = clock.monotonic();
    this.#since ??= now;
    const unstableMs = Math.round(now - this.#since);
    this.#retry?.cancel();
    this.#retry = clock.schedule(checkAgain, this.#delays.next(), { ref: persistent });
    if (unstableMs === 0 || unstableMs < missingGraceMs) return undefined;
    const path = this.#path;
    const message = `Cannot read "${path}": it was replaced during every attempt to read it for ${unstableMs} ms; it is tried again`;
    return new TargetError('ERR_TARGET_IO', path, message);
  }

  /** A check has succeeded, or there will be none. */
  close(): void {
    this.#retry?.cancel();
  }
}
