import { betterCause, type ChangeCause } from '../change.js';
import { isSameAppearance, type Appearance } from './appearance.js';
import type { QuietPeriod } from './quiet-period.js';

/** Which differences to report now, and when to check again. */
interface Due {
  /** The names of the differences whose quiet period is over; they are no longer pending. */
  readonly due: ReadonlySet<string>;
  /** What led to the check that first saw one of them; see `Change.cause`. */
  readonly cause: ChangeCause | undefined;
  /** When the next of the others is due, ms, and what led to it; undefined: there are no others. */
  readonly next: { readonly inMs: number; readonly cause: ChangeCause } | undefined;
}

/** Differences that were seen but not yet reported, by name. */
export class PendingChanges {
  readonly #pending = new Map<string, PendingChange>();
  #check = 0;

  /** A check begins. A difference that it does not see is forgotten. */
  begin(): void {
    this.#check += 1;
  }

  /** The check has seen this difference. If it is another than before, its quiet period starts again. */
  see(name: string, appearance: Appearance, quietPeriod: QuietPeriod, cause: ChangeCause, now: number): void {
    let pending = this.#pending.get(name);
    if (!pending) this.#pending.set(name, (pending = new PendingChange(appearance, cause, now)));
    pending.see(appearance, quietPeriod, cause, now, this.#check);
  }

  /**
   * What is due now that the check has seen all differences. Times are compared, not what remains of them: near zero a
   * remainder may be too small to move a clock on.
   * @param togetherMs how long a difference that is due waits for the others, so that they are reported as one
   * change.
   */
  due(togetherMs: number, now: number): Due {
    let areAllDue = true;
    for (const [name, { seenIn, dueAt }] of this.#pending) {
      if (seenIn !== this.#check) this.#pending.delete(name);
      else if (dueAt > now) areAllDue = false;
    }
    const due = new Set<string>();
    let first: ChangeCause | undefined;
    let next: Due['next'];
    for (const [name, { cause, dueAt }] of this.#pending) {
      const at = areAllDue || dueAt > now ? dueAt : dueAt + togetherMs;
      const inMs = at - now;
      if (inMs <= 0) {
        due.add(name);
        first ??= cause;
        this.#pending.delete(name);
      } else if (next === undefined || inMs < next.inMs) next = { inMs, cause };
    }
    return { due, cause: first, next };
  }
}

class PendingChange {
  readonly #firstSeen: number;
  #cause: ChangeCause;
  #appearance: Appearance;
  #unchangedSince: number;
  #seenIn = 0;
  #dueAt = 0;

  constructor(appearance: Appearance, cause: ChangeCause, now: number) {
    this.#appearance = appearance;
    this.#cause = cause;
    this.#firstSeen = now;
    this.#unchangedSince = now;
  }

  /** What led to the check that first saw it; see `Change.cause`. */
  get cause(): ChangeCause {
    return this.#cause;
  }

  /** The check that saw it last. */
  get seenIn(): number {
    return this.#seenIn;
  }

  /** When it is to be reported, monotonic ms. */
  get dueAt(): number {
    return this.#dueAt;
  }

  see(
    appearance: Appearance,
    { quietMs, totalMs }: QuietPeriod,
    cause: ChangeCause,
    now: number,
    check: number,
  ): void {
    this.#cause = betterCause(this.#cause, cause);
    if (!isSameAppearance(appearance, this.#appearance)) this.#unchangedSince = now;
    this.#appearance = appearance;
    this.#seenIn = check;
    this.#dueAt = Math.min(this.#unchangedSince + quietMs, this.#firstSeen + totalMs);
  }
}
