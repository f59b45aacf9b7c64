import type { Clock } from '../core/clock.js';
import { Alarm } from './alarm.js';
import type { TokenWakeReason } from './refresher-status.js';

/**
 * Plans when the next attempt begins, and why. A hint brings it forward, but never before the time set by `notBefore()`,
 * which is measured by the monotonic clock.
 */
export class NextAttempt {
  readonly #clock: Clock;
  readonly #alarm: Alarm;
  readonly #begin: () => void;
  #reason: TokenWakeReason = 'start';
  /** Not before this, monotonic ms. */
  #earliest = -Infinity;

  /** @param onJump called when the wall clock jumped, before the attempt begins. */
  constructor(clock: Clock, persistent: boolean, begin: () => void, onJump: () => void) {
    this.#clock = clock;
    this.#begin = begin;
    this.#alarm = new Alarm(clock, persistent, () => this.#onDue(), onJump);
  }

  /** The reason for the next attempt, or for the one in progress. */
  get reason(): TokenWakeReason {
    return this.#reason;
  }

  /** Epoch ms; undefined while none is planned. */
  get at(): number | undefined {
    return this.#alarm.at;
  }

  /** How long until then, ms. */
  get remainingMs(): number {
    return this.#alarm.remainingMs;
  }

  /** Prevents attempts from beginning for the next `delayMs`. */
  notBefore(delayMs: number): void {
    this.#earliest = Math.max(this.#earliest, this.#clock.monotonic() + delayMs);
  }

  /** Plans the attempt in `delayMs`, or as soon as allowed. */
  plan(reason: TokenWakeReason, delayMs: number): void {
    this.#reason = reason;
    this.#alarm.set(this.#bounded(delayMs));
  }

  /** Brings the attempt forward to `delayMs` from now, unless it is planned sooner anyway. */
  hasten(reason: TokenWakeReason, delayMs: number): void {
    if (this.#alarm.hasten(this.#bounded(delayMs))) this.#reason = reason;
  }

  /** The wall clock has jumped, perhaps past the planned time. */
  jumped(): void {
    if (this.#alarm.remainingMs === 0) this.#reason = 'clock';
  }

  clear(): void {
    this.#alarm.clear();
  }

  #onDue(): void {
    const earlyMs = this.#bounded(0);
    if (earlyMs > 0) this.#alarm.set(earlyMs);
    else this.#begin();
  }

  #bounded(delayMs: number): number {
    return Math.max(delayMs, this.#earliest - this.#clock.monotonic());
  }
}
