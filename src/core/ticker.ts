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
 * Calls back at the multiples of its interval until it is stopped. All tickers with the same options share one timer, so
 * that many watchers tick in one turn of the event loop.
 */
export class Ticker {
  readonly #options: TickerOptions;
  readonly #onTick: () => void;
  #shared: SharedTimer | undefined;

  constructor(options: TickerOptions, onTick: () => void) {
    this.#options = options;
    this.#onTick = onTick;
  }

  /** Has no effect while it is running. */
  start(): void {
    if (this.#shared || this.#options.intervalMs === 0) return;
    this.#shared = SharedTimer.of(this.#options);
    this.#shared.add(this.#onTick);
  }

  stop(): void {
    this.#shared?.delete(this.#onTick);
    this.#shared = undefined;
  }
}

/** The timers of each clock, by interval and persistence. A timer exists as long as a ticker uses it. */
const timers = new WeakMap<Clock, Map<string, SharedTimer>>();

class SharedTimer {
  readonly #options: TickerOptions;
  readonly #callbacks = new Set<() => void>();
  #timer: Scheduled | undefined;
  #at = 0;

  private constructor(options: TickerOptions) {
    this.#options = options;
  }

  static of(options: TickerOptions): SharedTimer {
    const { clock } = options;
    const ofClock = timers.get(clock) ?? new Map<string, SharedTimer>();
    timers.set(clock, ofClock);
    const key = keyOf(options);
    const timer = ofClock.get(key) ?? new SharedTimer(options);
    ofClock.set(key, timer);
    return timer;
  }

  add(callback: () => void): void {
    this.#callbacks.add(callback);
    if (!this.#timer) this.#schedule();
  }

  delete(callback: () => void): void {
    this.#callbacks.delete(callback);
    if (this.#callbacks.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    timers.get(this.#options.clock)?.delete(keyOf(this.#options));
  }

  #schedule(): void {
    const { clock, intervalMs, persistent } = this.#options;
    const now = clock.monotonic();
    // A timer may fire slightly early; the same multiple must not come twice.
    this.#at = (Math.floor(Math.max(now, this.#at) / intervalMs) + 1) * intervalMs;
    this.#timer = clock.schedule(() => this.#tick(), this.#at - now, { ref: persistent });
  }

  #tick(): void {
    this.#schedule();
    // A callback may stop another ticker, or start one, which waits for the next tick.
    for (const callback of [...this.#callbacks]) if (this.#callbacks.has(callback)) callback();
  }
}

function keyOf({ intervalMs, persistent }: TickerOptions): string {
  return `${intervalMs} ${persistent}`;
}
