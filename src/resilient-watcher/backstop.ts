import type { Clock, Scheduled } from '../ports.js';

/** How often, and by which clock. */
export interface BackstopOptions {
  readonly clock: Clock;
  /** 0: never. */
  readonly resyncIntervalMs: number;
  readonly persistent: boolean;
}

/** The slow tick that is always on, at multiples of its interval: a thousand watchers look together and share what they ask. */
export class Backstop {
  readonly #options: BackstopOptions;
  readonly #look: () => void;
  #tick: Scheduled | undefined;
  #at = 0;

  constructor(options: BackstopOptions, look: () => void) {
    this.#options = options;
    this.#look = look;
  }

  start(): void {
    const { clock, resyncIntervalMs, persistent } = this.#options;
    if (resyncIntervalMs === 0) return;
    const now = clock.monotonic();
    this.#at = (Math.floor(Math.max(now, this.#at) / resyncIntervalMs) + 1) * resyncIntervalMs;
    const tick = (): void => {
      this.start();
      this.#look();
    };
    this.#tick = clock.schedule(tick, this.#at - now, { ref: persistent });
  }

  cancel(): void {
    this.#tick?.cancel();
  }
}
