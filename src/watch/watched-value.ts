/**
 * A value parsed from watched files. Each change of the files leads to one attempt to parse them:
 *
 * | attempt              | the value is the same         | the value is new                      |
 * |----------------------|-------------------------------|---------------------------------------|
 * | succeeds             | nothing is emitted            | it is `current` from now on; `change` |
 * | … after `rejected`   | `accepted`                    | `change`, `accepted`                  |
 * | throws               | `current` stays; `rejected`   | –                                     |
 * | files cannot be read | `current` stays; `unreadable` | –                                     |
 *
 * An attempt uses one snapshot, so a value never mixes two revisions.
 */
import { onAbort } from '../core/scheduling/abort.js';
import type { ListenerError } from '../core/errors/errors.js';
import {
  asPart,
  Component,
  type ComponentEvents,
  type ComponentStatus,
  type LastError,
} from '../core/lifecycle/component.js';
import { systemClock, type Clock } from '../core/ports/clock.js';
import type { ResilientError } from '../core/errors/resilient-error.js';
import { holdProcess } from '../core/scheduling/event-loop.js';
import { Outcome } from '../core/scheduling/outcome.js';
import { flag, type MetricSample, type StatusDescription } from '../core/telemetry/status-description.js';
import type { ValueSource } from '../core/ports/value-source.js';
import type { Snapshot } from '../fs/snapshot.js';
import { TargetError } from '../fs/target-error.js';
import type { ResilientWatcherEvents, WatcherWarning } from './watcher-events.js';
import { ResilientWatcher } from './resilient-watcher.js';
import { WATCHER_OPTION_NAMES, type ResilientWatcherOptions } from './watcher-options.js';
import type { Acceptance, Degradation, Readable, Recovery, Unreadable } from '../core/lifecycle/events.js';

/** Common options of values from watched files: those of `ResilientWatcher` that apply to a few small files. */
export interface WatchedValueOptions extends Omit<
  ResilientWatcherOptions,
  (typeof NOT_FOR_VALUES)[number] | 'persistent'
> {
  /**
   * Whether watching keeps the process alive. Default false: a program that has nothing to do but to use the value ends
   * when its work is done. Set it to true if its only work is to listen to `change`.
   */
  readonly persistent?: boolean | undefined;
}

/** Common events of values from watched files. No event's string, JSON or `inspect` form contains a secret. */
export interface WatchedValueEvents<T> extends ComponentEvents {
  /** There is a new value. Also emitted for the first one. */
  change: [change: { readonly current: T; readonly previous: T | undefined }];
  /** The files changed, but the new contents cannot be used. The last good value is kept. */
  rejected: [rejection: { readonly error: ResilientError }];
  /** The contents of the files are in use again, after `change` if they are new. Once after `rejected`. */
  accepted: [Acceptance];
  /** The files cannot be read. The last good value is kept. Once, until `readable`. */
  unreadable: [Unreadable];
  readable: [Readable];
  /** Native watching is unavailable; the files are polled. Once, until `recovered`. */
  degraded: [Degradation];
  recovered: [Recovery];
  /** A problem that watching cannot solve, such as a `subPath` mount, which never shows an update. */
  warning: [warning: WatcherWarning];
  /** A listener failed. Without a listener, it becomes a process warning. */
  error: [error: ListenerError];
}

/** The common status of values from watched files. Plain data without secrets; times are epoch ms. */
export interface WatchedValueStatus extends ComponentStatus {
  readonly state: 'idle' | 'starting' | 'running' | 'closed';
  /** The watched path, absolute; for several files, all paths. */
  readonly path: string;
  /** Whether there is a value. */
  readonly available: boolean;
  /** Why the current contents are not used, or cannot be read; null if they are in use. */
  readonly rejected: LastError | null;
  /** The number of values so far. */
  readonly changes: number;
  /** How many states of the files could not be used. */
  readonly rejections: number;
  /** When the value last changed. */
  readonly lastChangeAt: number | null;
  /** The `state` of the watcher. */
  readonly watcher: ReturnType<ResilientWatcher['status']>['state'];
}

const NOT_FOR_VALUES = [
  'recursive',
  'maxContentBytes',
  'maxTotalBytes',
  'maxFiles',
] as const satisfies readonly (keyof ResilientWatcherOptions)[];

/** The names of `WatchedValueOptions`. */
export const VALUE_OPTION_NAMES = WATCHER_OPTION_NAMES.filter(
  (name) => !(NOT_FOR_VALUES as readonly string[]).includes(name),
);

/** Options of `changed()`. */
export interface ChangedOptions<T> {
  /** The value to be replaced; default the current one. */
  readonly previous?: T | undefined;
  /** Stops waiting when it aborts. */
  readonly signal?: AbortSignal | undefined;
}

/** Why there is no newer value: the error, and its form in the status. */
interface Failure {
  readonly error: Error;
  readonly lastError: LastError | null;
}

/** The constructor's arguments. */
interface WatchedValueSettings<Status> {
  /** The name of the class, the default of `name`. */
  readonly kind: string;
  /** What a value is, for messages. */
  readonly noun: string;
  readonly path: string | readonly string[];
  /** The maximum size of a file, bytes; a larger one is refused. */
  readonly maxBytes: number;
  readonly options: WatchedValueOptions;
  readonly description?: StatusDescription<Status>;
}

/** Whether the newest contents are in use. */
export function lastUpdate({ available, rejected }: WatchedValueStatus): MetricSample {
  return flag('value.last_update.successful', available && rejected === null);
}

const DESCRIPTION: StatusDescription<WatchedValueStatus> = { metrics: (status) => [lastUpdate(status)] };

/** Equal values are not reported as a change. */
interface Comparable {
  equals(other: unknown): boolean;
}

/** See the table at the top of this file. A subclass defines how a value is parsed. */
export abstract class WatchedValue<
  T extends Comparable,
  Events extends WatchedValueEvents<T> = WatchedValueEvents<T>,
  Status extends WatchedValueStatus = WatchedValueStatus,
>
  extends Component<Events, Status>
  implements ValueSource<T>
{
  /** The watched path, absolute; for several files, all paths. */
  readonly path: string;
  protected readonly clock: Clock;
  readonly #noun: string;
  readonly #watcher: ResilientWatcher;
  readonly #waiting = new Set<Outcome<T>>();
  #current: T | undefined;
  /** The attempt to parse the files that has not ended, and the state of the files that came meanwhile. */
  #parsing: Promise<void> | undefined;
  #newest: Snapshot | undefined;
  /** Why the contents last read are not used. */
  #refusal: Failure | undefined;
  /** Since when there is something else on disk than what is in use, monotonic ms. */
  #rejectedSince: number | undefined;
  /** Why the files currently cannot be read. */
  #unreadable: Failure | undefined;
  #changes = 0;
  #rejections = 0;
  #lastChangeAt: number | null = null;

  protected constructor(given: WatchedValueSettings<Status>) {
    const { kind, noun, path, maxBytes, options, description = DESCRIPTION } = given;
    const { signal, clock = systemClock, persistent = false, ...watcherOptions } = options;
    const settings = { ...watcherOptions, clock, persistent, maxContentBytes: maxBytes };
    const watcher = new ResilientWatcher(path, settings);
    super({ kind, name: watcher.name, signal, clock, description });
    this.path = watcher.path;
    this.#noun = noun;
    this.clock = clock;
    this.#watcher = watcher;
    asPart<ResilientWatcherEvents>(watcher, {
      change: ({ current }) => this.take(current),
      unreadable: ({ error }) => {
        const isFirst = this.#unreadable === undefined;
        this.#unreadable = this.#failureBy(error);
        if (isFirst) this.tell('unreadable', { error });
      },
      readable: (readable) => {
        const over = this.#unreadable;
        this.#unreadable = undefined;
        this.#forget(over);
        this.tell('readable', readable);
        // A change is reported before this.
        queueMicrotask(() => this.#explainAbsence());
      },
      degraded: (degradation) => this.tell('degraded', degradation),
      recovered: (recovery) => this.tell('recovered', recovery),
      warning: (warning) => this.tell('warning', warning),
      error: (error) => this.fail(error),
    });
  }

  /** The last good value; undefined before the first one. Never waits and never throws. */
  get current(): T | undefined {
    return this.#current;
  }

  /**
   * Resolves to the current value; the first call starts watching.
   * @throws an error whose `cause` says why there is none yet.
   * @throws {ClosedError} once closed; the signal's reason when that has aborted.
   */
  async get(): Promise<T> {
    await this.start();
    if (this.#current === undefined) await this.#parsed();
    this.throwIfClosed();
    if (this.#current !== undefined) return this.#current;
    const { refusal: cause } = this;
    const reason = cause ? `: ${cause.message}` : '';
    throw this.unavailable(`There is no ${this.#noun} yet in "${this.path}"${reason}`, { cause });
  }

  /**
   * Resolves to the current value as soon as there is one, for files that are written after the process has started. Until
   * it settles, it keeps the process alive.
   * @param signal stops waiting when it aborts.
   * @throws {ClosedError} (rejects) once closed; the signal's reason when that has aborted.
   */
  ready(signal?: AbortSignal): Promise<T> {
    return this.#next(undefined, signal).finally(holdProcess());
  }

  /**
   * Resolves to the first value other than `previous`; by default, to the next one. After a server has refused a value,
   * pass that value to wait until its replacement has reached the disk. Does not keep the process alive.
   * @throws {ClosedError} (rejects) once closed; the signal's reason when that has aborted.
   */
  changed({ previous = this.#current, signal }: ChangedOptions<T> = {}): Promise<T> {
    return this.#next(previous, signal);
  }

  async #next(previous: T | undefined, signal: AbortSignal | undefined): Promise<T> {
    const next = new Outcome<T>();
    this.#waiting.add(next);
    const forget = onAbort(signal, () => next.reject(signal?.reason as Error));
    // The first check may take a long time.
    this.start().then(() => {
      if (this.#current !== undefined && this.#current !== previous) next.resolve(this.#current);
    }, next.reject);
    return this.lifetime.untilEnd(next.promise).finally(() => {
      forget();
      this.#waiting.delete(next);
    });
  }

  /**
   * Checks the files now. Resolves when the contents have become `current` or were rejected. A file that is being
   * written in place is used only after it has settled (`settleMs`); to wait for that, use `changed()`.
   */
  async check(): Promise<void> {
    await this.start();
    await this.#watcher.check();
    await this.#parsed();
  }

  /**
   * Parses the files. Throws or rejects with an error if they cannot be used. A promise must settle, and soon when the
   * lifetime ends.
   */
  protected abstract parse(snapshot: Snapshot): T | Promise<T>;

  /** The error of `get()` while there is no value. */
  protected abstract unavailable(message: string, options: ErrorOptions): Error;

  /** The parts of a value that must never be shown. */
  protected abstract secretsOf(value: T): readonly string[];

  /** Why there is no newer value; undefined while the contents of the files are in use. */
  protected get refusal(): Error | undefined {
    return (this.#unreadable ?? this.#refusal)?.error;
  }

  protected override get purpose(): string {
    return `read "${this.path}"`;
  }

  protected override get secrets(): readonly string[] {
    return this.#current === undefined ? [] : this.secretsOf(this.#current);
  }

  /** Called after `change` was emitted, unless a listener has closed the component. */
  protected onReported(): void {}

  /** Reports a snapshot that cannot be used. A subclass may do so later, if no better one has come by then. */
  protected refuse(error: ResilientError): void {
    this.#refusal = this.#failureBy(error);
    this.#rejectedSince ??= this.clock.monotonic();
    this.#rejections += 1;
    this.tell('rejected', { error });
  }

  protected override async onStart(): Promise<void> {
    await this.#watcher.start().catch((cause: unknown) => {
      throw cause instanceof TargetError ? this.unavailable(cause.message, { cause }) : cause;
    });
    // With a value, what the files have become meanwhile is not waited for.
    if (this.#current === undefined) await this.#parsing;
    this.#explainAbsence();
    if (this.#current === undefined) await this.#parsing;
  }

  protected override onClose(): Promise<void> {
    return this.#watcher.close();
  }

  protected baseStatus(): WatchedValueStatus {
    return {
      name: this.name,
      state: this.lifecycleState,
      path: this.path,
      available: this.#current !== undefined,
      rejected: (this.#unreadable ?? this.#refusal)?.lastError ?? null,
      changes: this.#changes,
      rejections: this.#rejections,
      lastChangeAt: this.#lastChangeAt,
      watcher: this.#watcher.state,
      lastError: this.lastError,
    };
  }

  /**
   * Parses a snapshot. Called again for a value that was not valid yet, once its date has come. While an earlier
   * attempt has not ended, the newest snapshot waits for it.
   */
  protected take(snapshot: Snapshot): void {
    if (this.#parsing) {
      this.#newest = snapshot;
      return;
    }
    let value: T | Promise<T>;
    try {
      value = this.parse(snapshot);
    } catch (error) {
      this.refuse(error as ResilientError);
      return;
    }
    if (!(value instanceof Promise)) {
      this.use(value);
      return;
    }
    this.#parsing = this.lifetime.track(this.#takeLater(value));
  }

  async #takeLater(parsed: Promise<T>): Promise<void> {
    try {
      const value = await parsed;
      if (!this.lifetime.ended) this.use(value);
    } catch (error) {
      if (!this.lifetime.ended) this.refuse(error as ResilientError);
    }
    this.#parsing = undefined;
    const newest = this.#newest;
    this.#newest = undefined;
    if (newest && !this.lifetime.ended) this.take(newest);
  }

  /** Resolves when what has come so far has been parsed. The files may change again while that lasts. */
  async #parsed(): Promise<void> {
    const newest = this.#newest;
    await this.#parsing;
    if (newest) await this.#parsing;
  }

  /** Makes a value that was parsed the current one, unless it is the same. */
  protected use(value: T): void {
    const [over, since] = [this.#refusal, this.#rejectedSince];
    this.#refusal = undefined;
    this.#rejectedSince = undefined;
    this.#forget(over);
    if (!value.equals(this.#current)) this.#replace(value);
    if (since !== undefined) this.tell('accepted', { rejectedMs: this.clock.monotonic() - since });
  }

  #replace(value: T): void {
    const previous = this.#current;
    this.#current = value;
    this.#changes += 1;
    this.#lastChangeAt = this.clock.now();
    for (const next of this.#waiting) next.resolve(value);
    this.tell('change', { current: value, previous });
    if (!this.lifetime.ended) this.onReported();
  }

  /** A file that is missing from the start causes no `change`; parsing it yields the reason why there is no value. */
  #explainAbsence(): void {
    const { current } = this.#watcher;
    const isExplained = this.#refusal ?? this.#unreadable ?? this.#parsing;
    if (current && !this.#current && isExplained === undefined && !this.lifetime.ended) this.take(current);
  }

  #forget(over: Failure | undefined): void {
    if (over) this.forgetError(over.lastError, (this.#unreadable ?? this.#refusal)?.lastError);
  }

  #failureBy(error: Error): Failure {
    this.recordError(error);
    return { error, lastError: this.lastError };
  }
}
