import type { Clock } from '../core/ports/clock.js';
import type { ServiceAccountToken } from './token.js';

/**
 * A token, and how long it is valid from the moment it was received. The wall clock may jump, and the monotonic clock
 * stops while the system is suspended, so the token counts as expired as soon as either clock says so.
 */
export class TokenLease {
  readonly token: ServiceAccountToken;
  readonly #clock: Clock;
  /** From a date of the token to the monotonic clock, ms. */
  readonly #toMonotonic: number;

  constructor(token: ServiceAccountToken, clock: Clock) {
    this.token = token;
    this.#clock = clock;
    // A token dated in the future was issued just now by a clock ahead of ours: its lifetime begins at its own date.
    const start = clock.now() + token.aheadMs(clock.now());
    this.#toMonotonic = clock.monotonic() - start;
  }

  /** The time until the token should be replaced, ms; 0 or less if it is replaced late. */
  remainingMs(): number {
    return this.#until(this.token.expiresAt);
  }

  /** The time until the server refuses the token, ms; 0 or less if it has expired. */
  acceptedMs(): number {
    return this.#until(this.token.notAfter);
  }

  #until(end: number): number {
    return Math.min(end - this.#clock.now(), end + this.#toMonotonic - this.#clock.monotonic());
  }
}
