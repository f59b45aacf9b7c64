/**
 * A value made of watched files. Every change of the files leads to one attempt to make a value of them:
 *
 * | attempt                 | value is as before            | value is new                          |
 * |-------------------------|-------------------------------|---------------------------------------|
 * | succeeds                | nothing is emitted            | it is `current` from now on; `change` |
 * | throws                  | `current` stays; `rejected`   | –                                     |
 * | files cannot be read    | `current` stays; `unreadable` | –                                     |
 *
 * The attempt works on one snapshot, so a value never mixes two revisions.
 */
import { onAbort } from '../core/abort.js';
import { Component, type ComponentEvents, type ComponentStatus, type LastError } from '../core/component.js';
import { systemClock, type Clock } from '../core/clock.js';
import { Outcome } from '../core/outcome.js';
import type { ValueSource } from '../core/value-source.js';
import type { Snapshot } from '../fs/snapshot.js';
import type { WatcherWarning } from '../watch/watcher-events.js';
import { ResilientWatcher } from '../watch/resilient-watcher.js';
import type { ResilientWatcherOptions } from '../watch/watcher-options.js';
import type { Degradation, Readable, Recovery, Unreadable } from '../core/events.js';

/** Options that everything made of watched files has: those of `ResilientWatcher` that apply to a few small files. */
export interface WatchedValueOptions extends Omit<ResilientWatcherOptions, (typeof NOT_FOR_VALUES)[number]> {
  /** Whether watching keeps the process alive. Default false: following a secret is not work of its own. */
  readonly persistent?: boolean | undefined;
}

/** Events of everything made of watched files. No event's string, JSON or `inspect` form contains a secret. */
export interface WatchedValueEvents<T> extends ComponentEvents {
  /** There is a new value; the first one included. */
  change: [change: { readonly current: T; readonly previous: T | undefined }];
  /** The files changed, and what they hold cannot be used. The last good value is kept. */
  rejected: [rejection: { readonly error: Error }];
  /** The files cannot be read at present. The last good value is kept. Once, until `readable`. */
  unreadable: [Unreadable];
  readable: [Readable];
  /** Native watching is unavailable; the files are polled. Once, until `recovered`. */
  degraded: [Degradation];
  recovered: [Recovery];
  /** Something that no watcher can cure, such as a mount by `subPath`, which never shows an update. */
  warning: [warning: WatcherWarning];
}

/** The status of everything made of watched files. Plain data without secrets; times are epoch ms. */
export interface WatchedValueStatus extends ComponentStatus {
  readonly state: 'idle' | 'starting' | 'running' | 'closed';
  readonly path: string;
  /** Whether there is a value. */
  readonly available: boolean;
  /** Why what is on disk now is not used; null when it is. */
  readonly rejected: LastError | null;
  /** How many values there were. */
  readonly changes: number;
  readonly rejections: number;
  readonly lastChangeAt: number | null;
  /** Where hints come from: the `state` of the watcher. */
  readonly watcher: ReturnType<ResilientWatcher['status']>['state'];
}

const NOT_FOR_VALUES = [
  'recursive',
  'maxContentBytes',
  'maxTotalBytes',
  'maxFiles',
] as const satisfies readonly (keyof ResilientWatcherOptions)[];

/** What `changed()` waits for. */
export interface ChangedOptions<T> {
  /** The value that is not wanted any more; default: the current one. */
  readonly previous?: T | undefined;
  /** Gives up when it aborts. */
  readonly signal?: AbortSignal | undefined;
}

/** The constructor's arguments. */
interface WatchedValueSettings {
  /** The class, for the name. */
  readonly kind: string;
  readonly path: string | readonly string[];
  /** A larger file is refused, bytes. */
  readonly maxBytes: number;
  readonly options: WatchedValueOptions;
}

/** The table at the head of this file. A subclass says what a value is made of. */
export abstract class WatchedValue<
  T,
  Events extends WatchedValueEvents<T> = WatchedValueEvents<T>,
  Status extends WatchedValueStatus = WatchedValueStatus,
>
  extends Component<Events, Status>
  implements ValueSource<T>
{
  /** The watched path, absolute; of several files all of them. */
  readonly path: string;
  protected readonly clock: Clock;
  readonly #watcher: ResilientWatcher;
  readonly #waiting = new Set<Outcome<T>>();
  #current: T | undefined;
  #rejected: LastError | null = null;
  #refusal: Error | undefined;
  #changes = 0;
  #rejections = 0;
  #lastChangeAt: number | null = null;

  protected constructor({ kind, path, maxBytes, options }: WatchedValueSettings) {
    const { signal, clock = systemClock, name, ...watcherOptions } = options;
    const wrong = NOT_FOR_VALUES.find((name) => Object.hasOwn(watcherOptions, name));
    if (wrong) throw new TypeError(`${kind}: unknown option "${wrong}"`);
    const settings = { persistent: false, ...watcherOptions, clock, maxContentBytes: maxBytes };
    const watcher = new ResilientWatcher(path, settings);
    super({
      kind,
      name: name ?? watcher.name,
      purpose: `read "${watcher.path}"`,
      signal,
      clock,
    });
    this.path = watcher.path;
    this.clock = clock;
    this.#watcher = watcher;
    watcher.on('change', ({ current }) => this.take(current));
    watcher.on('unreadable', ({ error }) => {
      this.#refuse(error);
      this.#emit('unreadable', { error });
    });
    watcher.on('readable', (readable) => this.#emit('readable', readable));
    watcher.on('degraded', (degradation) => this.#emit('degraded', degradation));
    watcher.on('recovered', (recovery) => this.#emit('recovered', recovery));
    watcher.on('warning', (warning) => this.#emit('warning', warning));
    watcher.on('error', (error) => this.fail(error));
  }

  /** The last good value; undefined before there was one. Never waits and never throws. */
  get current(): T | undefined {
    return this.#current;
  }

  /**
   * The current value; the first call starts watching.
   * @throws an error whose `cause` says why there is none yet.
   * @throws {ClosedError} once closed.
   */
  async get(): Promise<T> {
    await this.start();
    this.throwIfClosed();
    if (this.#current === undefined) throw this.unavailable(this.#refusal);
    return this.#current;
  }

  /**
   * Resolves to the current value as soon as there is one: for files that are written after the process starts.
   * @param signal gives up when it aborts.
   * @throws {ClosedError} (rejects) once closed; the signal's reason when that has aborted.
   */
  ready(signal?: AbortSignal): Promise<T> {
    return this.changed({ previous: undefined, signal });
  }

  /**
   * Resolves to the first value that is not `previous`; by default, to the next one. With the value that a server
   * has just refused it waits for the rotation to reach the disk.
   * @throws {ClosedError} (rejects) once closed; the signal's reason when that has aborted.
   */
  async changed(options: ChangedOptions<T> = {}): Promise<T> {
    const { signal } = options;
    const previous = 'previous' in options ? options.previous : this.#current;
    await this.start();
    this.throwIfClosed();
    if (this.#current !== undefined && this.#current !== previous) return this.#current;
    const next = new Outcome<T>();
    this.#waiting.add(next);
    const forget = onAbort(signal, () => next.reject(signal?.reason as Error));
    return this.scope.untilEnd(next.promise).finally(() => {
      forget();
      this.#waiting.delete(next);
    });
  }

  /**
   * Checks the files now. Resolves when what they hold is `current`, or is rejected; a file that is being written in
   * place is used once it has settled (`settleMs`), which `changed()` waits for.
   */
  async check(): Promise<void> {
    await this.start();
    await this.#watcher.check();
  }

  /** Makes a value of what is on disk, or throws why that cannot be used. */
  protected abstract parse(snapshot: Snapshot): T;

  /** Whether two values are the same for whoever uses them. */
  protected abstract isSame(a: T, b: T): boolean;

  /** The error for whoever asks while there is no value. */
  protected abstract unavailable(cause: Error | undefined): Error;

  /** What must never be shown of a value. */
  protected abstract secretsOf(value: T): readonly string[];

  protected override get secrets(): readonly string[] {
    return this.#current === undefined ? [] : this.secretsOf(this.#current);
  }

  /** What a subclass does with a new value, before `change` is emitted. */
  protected onValue(_value: T): void {}

  /** What a subclass does when a value is refused, before `rejected` is emitted. */
  protected onRefused(_error: Error, _snapshot: Snapshot): void {}

  protected override async onStart(): Promise<void> {
    await this.#watcher.start();
    // Nothing is there and nothing was reported: that is why there is no value.
    const { current } = this.#watcher;
    if (current && !this.#current && !this.#refusal && !this.scope.ended) this.take(current);
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
      rejected: this.#rejected,
      changes: this.#changes,
      rejections: this.#rejections,
      lastChangeAt: this.#lastChangeAt,
      watcher: this.#watcher.state,
      lastError: this.lastError,
    };
  }

  /** Makes a value of a snapshot; called again for one that was refused for a date that has come meanwhile. */
  protected take(snapshot: Snapshot): void {
    let value: T;
    try {
      value = this.parse(snapshot);
    } catch (error) {
      this.#refuse(error as Error);
      this.#rejections += 1;
      this.onRefused(error as Error, snapshot);
      this.#emit('rejected', { error: error as Error });
      return;
    }
    this.#rejected = null;
    this.#refusal = undefined;
    const previous = this.#current;
    if (previous !== undefined && this.isSame(previous, value)) return;
    this.#current = value;
    this.#changes += 1;
    this.#lastChangeAt = this.clock.now();
    this.onValue(value);
    for (const next of this.#waiting) next.resolve(value);
    this.#emit('change', { current: value, previous });
  }

  #refuse(error: Error): void {
    this.recordError(error);
    this.#refusal = error;
    this.#rejected = this.lastError;
  }

  /** The events every subclass has, whatever others it adds. */
  #emit<E extends keyof WatchedValueEvents<T>>(event: E, ...args: WatchedValueEvents<T>[E]): void {
    (this.dispatch as (event: E, ...args: WatchedValueEvents<T>[E]) => void).call(this, event, ...args);
  }
}
