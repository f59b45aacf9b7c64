import type { Clock, Scheduled } from '../core/clock.js';

/** What is called back by a ticker. */
export interface Ticking {
  /** @param event stands for the tick, see `Hint`. */
  onTick(event: object): void;
}

/** How often a ticker ticks. */
export interface TickerOptions {
  readonly clock: Clock;
  /** Milliseconds; above 0. */
  readonly intervalMs: number;
  /** Whether it keeps the process alive. */
  readonly persistent: boolean;
}

/**
 * Calls back at the multiples of its interval. Users with the same options share one ticker, so that many watchers tick
 * in one turn of the event loop. A ticker exists as long as it has users.
 */
export class Ticker {
  /** The tickers by clock, interval and persistence. */
  static readonly #tickers = new WeakMap<Clock, Map<string, Ticker>>();

  readonly #options: TickerOptions;
  readonly #ticking = new Set<Ticking>();
  #timer: Scheduled | undefined;
  #at = 0;

  private constructor(options: TickerOptions) {
    this.#options = options;
  }

  /** From now on, calls `ticking` back at each multiple of the interval. */
  static start(ticking: Ticking, options: TickerOptions): void {
    const { clock } = options;
    const ofClock = Ticker.#tickers.get(clock) ?? new Map<string, Ticker>();
    Ticker.#tickers.set(clock, ofClock);
    const key = keyOf(options);
    const ticker = ofClock.get(key) ?? new Ticker(options);
    ofClock.set(key, ticker);
    ticker.#ticking.add(ticking);
    if (!ticker.#timer) ticker.#schedule();
  }

  /** @param options the options that it was started with. */
  static stop(ticking: Ticking, options: TickerOptions): void {
    const ticker = Ticker.#tickers.get(options.clock)?.get(keyOf(options));
    if (ticker) ticker.#stop(ticking);
  }

  #stop(ticking: Ticking): void {
    this.#ticking.delete(ticking);
    if (this.#ticking.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    Ticker.#tickers.get(this.#options.clock)?.delete(keyOf(this.#options));
  }

  #schedule(): void {
    const { clock, intervalMs, persistent } = this.#options;
    const now = clock.monotonic();
    // A timer may fire slightly early, but no multiple may come twice.
    this.#at = (Math.floor(Math.max(now, this.#at) / intervalMs) + 1) * intervalMs;
    this.#timer = clock.schedule(() => this.#tick(), this.#at - now, { ref: persistent });
  }

  #tick(): void {
    this.#schedule();
    const event = {};
    // A callback may stop another user, or add one, which waits for the next tick.
    for (const ticking of [...this.#ticking]) if (this.#ticking.has(ticking)) ticking.onTick(event);
  }
}

function keyOf({ intervalMs, persistent }: TickerOptions): string {
  return `${intervalMs} ${persistent}`;
}
