/** How much time is taken for one moment, ms. Small beside the second that requests are counted by. */
const MOMENT_MS = 100;

/** Moments on the wheel: a little over a minute, the longest that a refresher sleeps without looking. */
const WHEEL = 1024;

class Timer {
  constructor(at, callback) {
    this.at = at;
    this.callback = callback;
  }

  cancel() {
    this.callback = undefined;
  }
}

/**
 * A clock for many thousand timers, a wheel: those of one moment lie in one slot, in the order they were set.
 * Promises settle between moments, and only after a timer that set no other: one that did has only looked and gone
 * back to sleep.
 */
export class FleetClock {
  #start;
  #moment = 0;
  #wheel = Array.from({ length: WHEEL }, () => []);
  #scheduled = 0;

  constructor(start) {
    this.#start = start;
  }

  now() {
    return this.#start + this.#moment * MOMENT_MS;
  }

  monotonic() {
    return this.#moment * MOMENT_MS;
  }

  schedule(callback, delayMs) {
    this.#scheduled += 1;
    const timer = new Timer(this.#moment + Math.ceil(delayMs / MOMENT_MS), callback);
    this.#wheel[timer.at % WHEEL].push(timer);
    return timer;
  }

  async runUntil(endMs) {
    for (; this.#moment * MOMENT_MS < endMs; this.#moment += 1) {
      while (this.#wheel[this.#moment % WHEEL].some(({ at }) => at <= this.#moment)) {
        if (!this.#fire()) await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }

  /** Fires what is due and keeps the rest for a later turn; returns whether nobody did more than look. */
  #fire() {
    const slot = this.#moment % WHEEL;
    const timers = this.#wheel[slot];
    this.#wheel[slot] = [];
    let onlyLooked = true;
    for (const timer of timers) {
      if (timer.at > this.#moment) {
        this.#wheel[slot].push(timer);
      } else if (timer.callback) {
        const before = this.#scheduled;
        timer.callback();
        if (this.#scheduled === before) onlyLooked = false;
      }
    }
    return onlyLooked;
  }
}
