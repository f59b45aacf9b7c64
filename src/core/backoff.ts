import type { Random } from './random.js';

/** How delays between attempts grow. */
interface BackoffOptions {
  /** The longest first delay, ms. */
  readonly firstDelayMs: number;
  /** No delay is longer, ms. */
  readonly maxDelayMs: number;
  readonly random: Random;
}

/**
 * Delays that double up to a limit. Chance takes up to half off each, at the limit too, so that many processes
 * that failed together do not come back together.
 */
export class Backoff {
  readonly #options: BackoffOptions;
  #taken = 0;

  constructor(options: BackoffOptions) {
    this.#options = options;
  }

  /** The delay before the next attempt, ms. */
  next(): number {
    const { firstDelayMs, maxDelayMs, random } = this.#options;
    const whole = Math.min(maxDelayMs, firstDelayMs * 2 ** this.#taken);
    if (whole < maxDelayMs) this.#taken += 1;
    return whole * (1 - random() / 2);
  }

  /** Starts again from the first delay. */
  reset(): void {
    this.#taken = 0;
  }
}
