import type { Random } from 'resilient-watcher';
import { apiFailureOf, Backoff, pauseAfter } from 'resilient-watcher/internal';

const FIRST_DELAY_MS = 500;

/** While nobody answers, an attempt costs nobody anything, and the next change waits for it. */
const LONGEST_LOSS_MS = 5_000;
const LONGEST_REFUSAL_MS = 30_000;

/** The delays between failed attempts: short ones while the API server does not answer, longer ones while it refuses. */
export class ApiBackoff {
  readonly #losses: Backoff;
  readonly #refusals: Backoff;

  constructor(random: Random) {
    this.#losses = new Backoff({ firstDelayMs: FIRST_DELAY_MS, maxDelayMs: LONGEST_LOSS_MS, random });
    this.#refusals = new Backoff({ firstDelayMs: FIRST_DELAY_MS, maxDelayMs: LONGEST_REFUSAL_MS, random });
  }

  /** The delay before the next attempt, ms: at least what the API server asks for. */
  after(error: unknown): number {
    if (apiFailureOf(error)) return Math.max(this.#refusals.next(), pauseAfter(error));
    // An API server that has just started refuses for a moment.
    this.#refusals.reset();
    return this.#losses.next();
  }

  /** Starts again from the first delay. */
  reset(): void {
    this.#losses.reset();
    this.#refusals.reset();
  }
}
