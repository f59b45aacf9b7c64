import type { Clock } from '../core/clock.js';
import type { ServiceAccountToken } from './token.js';

/**
 * A token, and how long it is valid from the moment it was received. The wall clock may jump, and the monotonic clock
 * stops while the system is suspended, so the token counts as expired as soon as either clock says so.
 */
export class TokenLease {
  readonly token: ServiceAccountToken;
  readonly #clock: Clock;
  readonly #monotonicEnd: number;

  constructor(token: ServiceAccountToken, clock: Clock) {
    this.token = token;
    this.#clock = clock;
    // A token dated in the future was issued just now by a clock ahead of ours: its lifetime begins at its own date.
    const start = clock.now() + token.aheadMs(clock.now());
    this.#monotonicEnd = clock.monotonic() + (token.expiresAt - start);
  }

  /** The remaining validity, ms; 0 or less if it has expired. */
  remainingMs(): number {
    return Math.min(this.token.expiresAt - this.#clock.now(), this.#monotonicEnd - this.#clock.monotonic());
  }
}
