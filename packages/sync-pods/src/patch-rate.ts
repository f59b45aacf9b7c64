/** The rate of patches, with a burst after a quiet time: a token bucket. */
export class PatchRate {
  readonly #perSecond: number;
  readonly #burst: number;
  #tokens: number;
  #filledAt: number;

  /** @param now monotonic ms. */
  constructor(perSecond: number, burst: number, now: number) {
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#tokens = burst;
    this.#filledAt = now;
  }

  /** Takes one patch, or returns the time to wait for it, ms. */
  take(now: number): number {
    const filled = ((now - this.#filledAt) * this.#perSecond) / 1_000;
    this.#tokens = Math.min(this.#burst, this.#tokens + filled);
    this.#filledAt = now;
    if (this.#tokens < 1) return Math.ceil(((1 - this.#tokens) * 1_000) / this.#perSecond);
    this.#tokens -= 1;
    return 0;
  }
}
