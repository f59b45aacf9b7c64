import type { Clock, Scheduled } from '../core/clock.js';

/** How often, and by which clock. */
export interface ResyncOptions {
  readonly clock: Clock;
  /** 0: never. */
  readonly resyncIntervalMs: number;
  readonly persistent: boolean;
}

/** The slow tick that is always on, at multiples of its interval: a thousand watchers look together and share what they ask. */
export class Resync {
  readonly #options: ResyncOptions;
  readonly #check: () => void;
  #tick: Scheduled | undefined;
  #at = 0;

  constructor(options: ResyncOptions, look: () => void) {
    this.#options = options;
    this.#check = look;
  }

  start(): void {
    const { clock, resyncIntervalMs, persistent } = this.#options;
    if (resyncIntervalMs === 0) return;
    const now = clock.monotonic();
    this.#at = (Math.floor(Math.max(now, this.#at) / resyncIntervalMs) + 1) * resyncIntervalMs;
    const tick = (): void => {
      this.start();
      this.#check();
    };
    this.#tick = clock.schedule(tick, this.#at - now, { ref: persistent });
  }

  cancel(): void {
    this.#tick?.cancel();
  }
}
