/**
 * Work at the multiples of an interval. Users with the same options share one timer, so that many watchers tick in one turn
 * of the event loop.
 */
import type { Clock, Scheduled } from '../core/ports/clock.js';

interface TickerOptions {
  readonly clock: Clock;
  /** Milliseconds; above 0. */
  readonly intervalMs: number;
  /** Whether it keeps the process alive. */
  readonly persistent: boolean;
}

/** @param event stands for the tick, see `Hint`. */
type Tick = (event: object) => void;

/** The tickers by clock, and by interval and persistence. */
const tickers = new WeakMap<Clock, Map<string, Ticker>>();

/** Calls `tick` at each multiple of the interval. Returns a function that ends this. */
export function tickEvery(options: TickerOptions, tick: Tick): () => void {
  const { clock, intervalMs, persistent } = options;
  const ofClock = tickers.get(clock) ?? new Map<string, Ticker>();
  tickers.set(clock, ofClock);
  const key = `${intervalMs} ${persistent}`;
  const ticker = ofClock.get(key) ?? new Ticker(options);
  ofClock.set(key, ticker);
  ticker.users.add(tick);
  return () => {
    if (!ticker.users.delete(tick) || ticker.users.size > 0) return;
    ticker.timer.cancel();
    ofClock.delete(key);
  };
}

/** A ticker exists as long as it has users. */
class Ticker {
  readonly users = new Set<Tick>();
  timer: Scheduled;
  readonly #options: TickerOptions;
  #at = 0;

  constructor(options: TickerOptions) {
    this.#options = options;
    this.timer = this.#scheduled();
  }

  #scheduled(): Scheduled {
    const { clock, intervalMs, persistent } = this.#options;
    const now = clock.monotonic();
    // A timer may fire slightly early, but no multiple may come twice.
    this.#at = (Math.floor(Math.max(now, this.#at) / intervalMs) + 1) * intervalMs;
    return clock.schedule(() => this.#tick(), this.#at - now, { ref: persistent });
  }

  #tick(): void {
    this.timer = this.#scheduled();
    const event = {};
    // A user may end another one, or begin, which waits for the next tick.
    for (const tick of [...this.users]) if (this.users.has(tick)) tick(event);
  }
}
