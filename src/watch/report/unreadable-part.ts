/**
 * Part of a tree that cannot be read while the rest is reported. Like the whole, it is reported when that lasts.
 *
 * | observed                | before              | then                                              |
 * |-------------------------|---------------------|---------------------------------------------------|
 * | a part is unreadable    | nothing, or another | pending for `missingGraceMs`; at the start, due   |
 * | the same part           | pending             | due after `missingGraceMs`, for which it is       |
 * |                         |                     | checked again                                     |
 * | everything can be read  | pending             | forgotten                                         |
 */
import type { Clock, Scheduled } from '../../core/clock.js';
import type { TargetError } from '../../fs/target-error.js';
import type { ChangeCause } from '../change.js';

/** Options of an unreadable part. */
interface UnreadablePartOptions {
  readonly clock: Clock;
  readonly persistent: boolean;
  readonly missingGraceMs: number;
}

/** The part that is unreadable and yet to be reported, if there is one. */
export class UnreadablePart {
  readonly #options: UnreadablePartOptions;
  readonly #checkAgain: (cause: ChangeCause) => void;
  #pending: { readonly error: TargetError; readonly since: number } | undefined;
  #timer: Scheduled | undefined;

  /** @param checkAgain called when the part is due. */
  constructor(options: UnreadablePartOptions, checkAgain: (cause: ChangeCause) => void) {
    this.#options = options;
    this.#checkAgain = checkAgain;
  }

  get isPending(): boolean {
    return this.#pending !== undefined;
  }

  /** Whether the part that is unreadable for this reason is to be reported now. If not, it is checked again in time. */
  isDue(error: TargetError, cause: ChangeCause): boolean {
    const { clock, missingGraceMs, persistent } = this.#options;
    const now = clock.monotonic();
    if (this.#pending?.error.code !== error.code || this.#pending.error.path !== error.path) {
      this.#pending = { error, since: now };
    }
    const remainingMs = cause === 'start' ? 0 : this.#pending.since + missingGraceMs - now;
    this.#timer?.cancel();
    if (remainingMs <= 0) return true;
    this.#timer = clock.schedule(() => this.#checkAgain(cause), remainingMs, { ref: persistent });
    return false;
  }

  forget(): void {
    this.#pending = undefined;
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
