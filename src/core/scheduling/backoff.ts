import type { Random } from '../ports/random.js';

/**
 * The maximum `Retry-After`, ms. A server that asks for more is overloaded or mistaken, and its answer may be needed
 * sooner.
 */
export const LONGEST_RETRY_AFTER_MS = 300_000;

export interface BackoffOptions {
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
  readonly random: Random;
}

/**
 * Delays that double on each failure up to a maximum, with up to 50% jitter even at the maximum, so that processes
 * that failed together do not retry together.
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
