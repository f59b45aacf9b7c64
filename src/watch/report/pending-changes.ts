import type { ChangeCause } from '../change.js';
import type { QuietPeriod } from './quiet-period.js';

/** A difference that is reported separately, and its quiet period. */
export interface Difference {
  /** Changes when the difference changes; then its quiet period starts again. */
  readonly appearance: string;
  readonly quietPeriod: QuietPeriod;
}

/** Which differences to report now, and when to check again. */
interface Due {
  /** The names of the differences whose quiet period is over; they are no longer pending. */
  readonly due: readonly string[];
  /** What led to the check that first saw one of them. */
  readonly cause: ChangeCause | undefined;
  /** When the next of the others is due, ms, and what led to it. */
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
   * Updates the pending differences; one that is not among the given ones is forgotten.
   * @param togetherMs how long a difference that is due waits for the others, so that they are reported as one
   * change.
   */
  update(
    differences: ReadonlyMap<string, Difference>,
    cause: ChangeCause,
    now: number,
    togetherMs: number,
  ): Due {
    for (const name of this.#pending.keys()) if (!differences.has(name)) this.#pending.delete(name);
    const remaining = new Map<string, number>();
    for (const [name, { appearance, quietPeriod }] of differences) {
      const pending = this.#pending.get(name) ?? new PendingChange(appearance, cause, now);
      this.#pending.set(name, pending);
      remaining.set(name, pending.remaining(appearance, now, quietPeriod));
    }
    const areAllDue = [...remaining.values()].every((inMs) => inMs <= 0);
    const due: string[] = [];
    let first: ChangeCause | undefined;
    let next: Due['next'];
    for (const [name, pending] of this.#pending) {
      const dueInMs = remaining.get(name) ?? 0;
      const inMs = areAllDue || dueInMs > 0 ? dueInMs : dueInMs + togetherMs;
      if (inMs <= 0) {
        due.push(name);
        first ??= pending.cause;
        this.#pending.delete(name);
      } else if (next === undefined || inMs < next.inMs) next = { inMs, cause: pending.cause };
    }
    return { due, cause: first, next };
  }
}

class PendingChange {
  /** What led to the check that first saw it. */
  readonly cause: ChangeCause;
  readonly #firstSeen: number;
  #appearance: string;
  #unchangedSince: number;

  constructor(appearance: string, cause: ChangeCause, now: number) {
    this.#appearance = appearance;
    this.cause = cause;
    this.#firstSeen = now;
    this.#unchangedSince = now;
  }

  /** How much longer it has to wait, ms; 0 or less: report it now. */
  remaining(appearance: string, now: number, { quietMs, totalMs }: QuietPeriod): number {
    if (appearance !== this.#appearance) {
      this.#appearance = appearance;
      this.#unchangedSince = now;
    }
    return Math.min(this.#unchangedSince + quietMs, this.#firstSeen + totalMs) - now;
  }
}
