import type { ChangeCause } from './change.js';
import type { QuietPeriod } from './quiet-period.js';

/** A difference that waits by itself. */
export interface Waiting {
  /** What it looks like now; its waiting begins anew when that changes. */
  readonly appearance: string;
  readonly quietPeriod: QuietPeriod;
}

/** What is to be done about all differences. */
export interface Ripeness {
  /** The names of those that have waited long enough; they are in pending no longer. */
  readonly ripe: readonly string[];
  /** What made us look when the first of them was first seen. */
  readonly cause: ChangeCause | undefined;
  /** When the next of the others will be ripe, ms, and what led to it. */
  readonly next: { readonly inMs: number; readonly cause: ChangeCause } | undefined;
}

/** Differences that were seen but not yet reported, by name. */
export class PendingChanges {
  readonly #pending = new Map<string, PendingChange>();

  get any(): boolean {
    return this.#pending.size > 0;
  }

  clear(): void {
    this.#pending.clear();
  }

  /**
   * Takes in all that differs now. What differs no longer is forgotten.
   * @param togetherMs how long what is ripe waits for the others, so that what changes together is one change.
   */
  weigh(
    differences: ReadonlyMap<string, Waiting>,
    cause: ChangeCause,
    now: number,
    togetherMs: number,
  ): Ripeness {
    for (const name of this.#pending.keys()) if (!differences.has(name)) this.#pending.delete(name);
    const remaining = new Map<string, number>();
    for (const [name, { appearance, quietPeriod }] of differences) {
      const pending = this.#pending.get(name) ?? new PendingChange(appearance, cause, now);
      this.#pending.set(name, pending);
      remaining.set(name, pending.remaining(appearance, now, quietPeriod));
    }
    const areAllRipe = [...remaining.values()].every((inMs) => inMs <= 0);
    const ripe: string[] = [];
    let first: ChangeCause | undefined;
    let next: Ripeness['next'];
    for (const [name, pending] of this.#pending) {
      const ripeInMs = remaining.get(name) ?? 0;
      const inMs = areAllRipe || ripeInMs > 0 ? ripeInMs : ripeInMs + togetherMs;
      if (inMs <= 0) {
        ripe.push(name);
        first ??= pending.cause;
        this.#pending.delete(name);
      } else if (next === undefined || inMs < next.inMs) next = { inMs, cause: pending.cause };
    }
    return { ripe, cause: first, next };
  }
}

/** A difference that was seen but not yet reported. */
class PendingChange {
  /** What made us look when it was first seen. */
  readonly cause: ChangeCause;
  readonly #first: number;
  #key: string;
  #since: number;

  constructor(key: string, cause: ChangeCause, now: number) {
    this.#key = key;
    this.cause = cause;
    this.#first = now;
    this.#since = now;
  }

  /** Takes in what is seen now and says how much longer to wait, ms; 0 or less: report it. */
  remaining(key: string, now: number, { quietMs, totalMs }: QuietPeriod): number {
    if (key !== this.#key) {
      this.#key = key;
      this.#since = now;
    }
    return Math.min(this.#since + quietMs, this.#first + totalMs) - now;
  }
}
