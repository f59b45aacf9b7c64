/** How much time is taken for one moment, ms: requests are counted by the second anyway. */
const MOMENT_MS = 1_000;

class Timer {
  constructor(callback) {
    this.callback = callback;
  }

  cancel() {
    this.callback = undefined;
  }
}

/**
 * A clock for many thousand timers: those of one moment lie together, in the order they were set. Promises settle
 * only after a moment in which a timer set no other: one that did has only looked and gone back to sleep.
 */
export class FleetClock {
  #start;
  #moment = 0;
  #moments = [];
  #scheduled = 0;
  #firing;
  /** Lists that have been used, which have their room already. */
  #free = [];

  constructor(start, lengthMs) {
    this.#start = start;
    this.#moments = Array.from({ length: Math.ceil(lengthMs / MOMENT_MS) }, () => undefined);
  }

  now() {
    return this.#start + this.#moment * MOMENT_MS;
  }

  monotonic() {
    return this.#moment * MOMENT_MS;
  }

  schedule(callback, delayMs) {
    this.#scheduled += 1;
    // The usual case is a sleeper that goes back to sleep: its timer is free to be used again.
    const timer = this.#firing?.callback === callback ? this.#firing : new Timer(callback);
    const at = this.#moment + Math.ceil(delayMs / MOMENT_MS);
    if (at < this.#moments.length) (this.#moments[at] ??= this.#free.pop() ?? []).push(timer);
    return timer;
  }

  /** Runs to the end. */
  async run() {
    for (; this.#moment < this.#moments.length; this.#moment += 1) {
      for (let timers = this.#take(); timers; timers = this.#take()) {
        if (!this.#fire(timers)) await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }

  #take() {
    const timers = this.#moments[this.#moment];
    this.#moments[this.#moment] = undefined;
    return timers;
  }

  /** Returns whether nobody did more than look. */
  #fire(timers) {
    let onlyLooked = true;
    for (const timer of timers) {
      if (!timer.callback) continue;
      const before = this.#scheduled;
      this.#firing = timer;
      timer.callback();
      if (this.#scheduled === before) onlyLooked = false;
    }
    this.#firing = undefined;
    timers.length = 0;
    this.#free.push(timers);
    return onlyLooked;
  }
}
