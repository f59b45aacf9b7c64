/**
 * Whether the target can be read, as far as that was reported.
 *
 * | observed                | before                  | then                                                       |
 * |-------------------------|-------------------------|------------------------------------------------------------|
 * | the target is unreadable| anything else           | `unreadable`; the caller has waited for `missingGraceMs`   |
 * | a part is unreadable    | nothing, or another     | pending for `missingGraceMs`; at the start, `unreadable`   |
 * | the same part           | pending                 | `unreadable` after `missingGraceMs`, for which the target  |
 * |                         |                         | is checked again                                           |
 * | the same, or that part  | reported                | nothing                                                    |
 * | everything can be read  | pending                 | forgotten                                                  |
 * | everything can be read  | reported                | `readable`                                                 |
 *
 * A part is a part of a tree; the rest is reported meanwhile.
 */
import type { Clock, Scheduled } from '../../core/clock.js';
import type { TargetError } from '../../fs/target-error.js';
import type { ChangeCause } from '../change.js';
import type { WatcherEvent } from '../watcher-events.js';

interface ReadabilityOptions {
  readonly clock: Clock;
  readonly persistent: boolean;
  readonly missingGraceMs: number;
}

/** Whoever this is reported for. */
interface ReadabilityOwner {
  /** Emits `unreadable` or `readable`. */
  report(event: WatcherEvent): void;
  /** A part is due now. */
  checkAgain(cause: ChangeCause): void;
}

/** Something that cannot be read, and since when by the monotonic clock. */
interface Failure {
  readonly error: TargetError;
  readonly since: number;
}

/** What cannot be read at present. */
export class Readability {
  readonly #options: ReadabilityOptions;
  readonly #owner: ReadabilityOwner;
  #reported: Failure | undefined;
  /** The part that is yet to be reported. */
  #pending: Failure | undefined;
  #timer: Scheduled | undefined;

  constructor(options: ReadabilityOptions, owner: ReadabilityOwner) {
    this.#options = options;
    this.#owner = owner;
  }

  /** Why the target cannot be read, if that was reported. */
  get error(): TargetError | undefined {
    return this.#reported?.error;
  }

  get hasPending(): boolean {
    return this.#pending !== undefined;
  }

  /** Whether this was reported. */
  isKnown(error: TargetError): boolean {
    return isSame(this.#reported, error);
  }

  /** The target cannot be read, and that is to be reported. */
  unreadable(error: TargetError): void {
    this.forget();
    const since = this.#reported?.since ?? this.#options.clock.monotonic();
    this.#reported = { error, since };
    this.#owner.report({ name: 'unreadable', payload: { error } });
  }

  /** The target was read, except this part of it. */
  partlyUnreadable(error: TargetError, cause: ChangeCause): void {
    if (this.isKnown(error)) this.forget();
    else if (this.#isDue(error, cause)) this.unreadable(error);
  }

  /** The whole target was read, or is missing. */
  readable(): void {
    this.forget();
    if (!this.#reported) return;
    const unreadableMs = this.#options.clock.monotonic() - this.#reported.since;
    this.#reported = undefined;
    this.#owner.report({ name: 'readable', payload: { unreadableMs } });
  }

  /** Forgets what is pending. */
  forget(): void {
    this.#pending = undefined;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #isDue(error: TargetError, cause: ChangeCause): boolean {
    const { clock, missingGraceMs, persistent } = this.#options;
    const now = clock.monotonic();
    const pending = isSame(this.#pending, error) ? this.#pending : { error, since: now };
    this.#pending = pending;
    const remainingMs = cause === 'start' ? 0 : pending.since + missingGraceMs - now;
    this.#timer?.cancel();
    if (remainingMs <= 0) return true;
    this.#timer = clock.schedule(() => this.#owner.checkAgain(cause), remainingMs, { ref: persistent });
    return false;
  }
}

function isSame(failure: Failure | undefined, { code, path }: TargetError): failure is Failure {
  return failure?.error.code === code && failure.error.path === path;
}
