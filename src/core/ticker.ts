import type { Clock, Scheduled } from './clock.js';

/** Options of a ticker. */
interface TickerOptions {
  readonly clock: Clock;
  /** Milliseconds; 0: never. */
  readonly intervalMs: number;
  /** Whether it keeps the process alive. */
  readonly persistent: boolean;
}

/**
 * Calls back at the multiples of its interval until it is stopped. All tickers with the same interval tick
 * together, so that many watchers share one turn of the event loop.
 */
export class Ticker {
  readonly #options: TickerOptions;
  readonly #onTick: () => void;
  #timer: Scheduled | undefined;
  #at = 0;

  constructor(options: TickerOptions, onTick: () => void) {
    this.#options = options;
    this.#onTick = onTick;
  }

  /** Does nothing while it runs. */
  start(): void {
    if (this.#timer || this.#options.intervalMs === 0) return;
    this.#schedule();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #schedule(): void {
    const { clock, intervalMs, persistent } = this.#options;
    const now = clock.monotonic();
    // A timer may fire slightly early; the same multiple must not come twice.
    this.#at = (Math.floor(Math.max(now, this.#at) / intervalMs) + 1) * intervalMs;
    const tick = (): void => {
      this.#schedule();
      this.#onTick();
    };
    this.#timer = clock.schedule(tick, this.#at - now, { ref: persistent });
  }
}
