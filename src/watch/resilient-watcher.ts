/**
 * The machine of this library: every hint leads to one check; what a check finds is compared with what was last
 * reported, and the difference is reported.
 *
 * | state      | a hint                  | `start()`      | `close()`  |
 * |------------|-------------------------|----------------|------------|
 * | `idle`     | –                       | → `starting`   | → `closed` |
 * | `starting` | – (the check is to come) | same promise   | → `closed` |
 * | running    | a check                  | same promise   | → `closed` |
 * | `closed`   | –                       | rejects        | –          |
 *
 * Running shows as `watching`, `recovering` or `degraded`, which says where hints come from (connection.ts).
 * What a check leads to is the table of reporter.ts, how checks follow each other that of look-loop.ts.
 */
import { ClosedError } from '../core/errors.js';
import { Emitter } from '../core/emitter.js';
import { Lifecycle } from '../core/lifecycle.js';
import type { Scope } from '../core/scope.js';
import { stableRead } from '../fs/stable-read.js';
import { backendsFor } from './backend-choice.js';
import { Resync } from './resync.js';
import { BackendConnection, type Degradation, type Recovery, type Restart } from './connection.js';
import { Latest } from './latest.js';
import { Check } from './check.js';
import { CheckLoop } from './check-loop.js';
import { MountExamination } from './mount-examination.js';
import { Observer } from '../fs/observer.js';
import { mergeChanges, type Change, type ChangeCause } from './change.js';
import { Reporter, type RevisionChange } from './reporter.js';
import {
  resolveWatcherOptions,
  type ResilientWatcherOptions,
  type ResolvedWatcherOptions,
} from './watcher-options.js';
import { Writes } from './writes.js';
import { Tally, type WatcherStatus, type WatcherWarning } from './watcher-status.js';
import type { Found, Target } from '../fs/observation.js';
import type { Snapshot } from '../fs/snapshot.js';
import { targetAt } from '../fs/targets/target.js';
import { TreeTarget } from '../fs/targets/tree-target.js';

/** The events of a `ResilientWatcher`. */
export interface ResilientWatcherEvents {
  /** The content differs from what was last reported. Once for each difference, whole. */
  change: [change: Change];
  /** A new revision was published in which this target is the same. */
  revision: [revision: RevisionChange];
  /** The backend was lost; an attempt to subscribe again begins. */
  restart: [restart: Restart];
  /** Native watching cannot be had: the target is polled. Once, until `recovered`. */
  degraded: [degradation: Degradation];
  /** Native watching is back. */
  recovered: [recovery: Recovery];
  /** Something that no watcher can cure, see `WatcherWarning`. Once. */
  warning: [warning: WatcherWarning];
  /**
   * The target cannot be read (`TargetError`, once until it changes), a listener failed (`ListenerError`), or
   * the attempts to restart are used up (`BackendError`). Watching goes on. Unheard, it becomes a process
   * warning.
   */
  error: [error: Error];
}

/**
 * Reports every change of a file, a volume, a directory, a tree or a group of files, once and whole, for as long as
 * the process lives.
 *
 * The path may be a plain file, a link, a key of a volume, a volume, or not exist yet, at any depth; what stands
 * there may become something else. A group of files is given as an array. `start()` reports what is there as the
 * first `change`.
 *
 * ```ts
 * const watcher = new ResilientWatcher('/etc/policy/policy.yaml');
 * watcher.on('change', ({ current }) => apply(current.content));
 * await watcher.start();
 * ```
 */
export class ResilientWatcher extends Emitter<ResilientWatcherEvents> implements AsyncIterable<Change> {
  readonly #target: Target;
  readonly #options: ResolvedWatcherOptions;
  readonly #lifecycle: Lifecycle;
  readonly #scope: Scope;
  readonly #connection: BackendConnection;
  readonly #loop: CheckLoop;
  readonly #check: Check;
  readonly #observer: Observer;
  readonly #reporter: Reporter;
  readonly #resync: Resync;
  readonly #mount: MountExamination;
  readonly #tally = new Tally();
  readonly #streams = new Set<Latest<Change>>();
  #lastChange: Change | undefined;

  /**
   * @param path the file or directory, or several files; a relative path is taken from the working directory now.
   * @throws {TypeError} for an empty path, a NUL byte, no path at all, the same one twice, an unknown option or one
   * of the wrong type.
   * @throws {RangeError} for a number out of range.
   */
  constructor(path: string | readonly string[], options?: ResilientWatcherOptions) {
    super();
    this.#options = resolveWatcherOptions(options);
    this.#target = targetAt(path, this.#options);
    const settings = { ...this.#options, path: this.#target.path };
    this.#lifecycle = this.#newLifecycle();
    this.#scope = this.#lifecycle.scope;
    this.#observer = new Observer(this.#target, settings.fs);
    this.#loop = new CheckLoop((cause) => this.#checkSafely(cause), this.#scope);
    this.#resync = new Resync(settings, () => this.#hint('resync'));
    this.#mount = new MountExamination(settings.fs);
    const writes = new Writes();
    this.#reporter = new Reporter(
      settings,
      {
        change: (change) => this.#change(change),
        revision: (revision) => this.#tell('revision', revision),
        unreadable: (error) => this.#fail(error),
        // Where it was not quiet a hint has said so; what is in pending is looked at in any case.
        checkAgain: (cause) => this.#request(cause),
      },
      writes,
    );
    const backends = backendsFor(settings.backend, settings);
    this.#connection = new BackendConnection(
      { ...settings, backends },
      {
        hint: (source, written, path) => {
          if (written !== undefined) writes.tell(written, path);
          this.#hint(source, path);
        },
        arm: (subscription) => this.#check.arm(subscription),
        restarting: (restart) => this.#tell('restart', restart),
        restarted: () => this.#hint('restart'),
        degraded: (degradation) => this.#degraded(degradation),
        recovered: (recovery) => this.#tell('recovered', recovery),
        gaveUp: (cause) => this.#fail(cause),
      },
      this.#scope,
    );
    this.#check = new Check({
      ...settings,
      target: this.#target,
      observer: this.#observer,
      reporter: this.#reporter,
      writes,
      connection: this.#connection,
      tally: this.#tally,
      scope: this.#scope,
      found: (found, cause) => this.#found(found, cause),
    });
  }

  /** The path that is watched, absolute; of a group all of them. */
  get path(): string {
    return this.#target.path;
  }

  /** What was last reported; a `MissingSnapshot` before the first report. */
  get current(): Snapshot {
    return this.#reporter.reported;
  }

  /** See `WatcherStatus.state`. */
  get state(): WatcherStatus['state'] {
    if (this.#lifecycle.state !== 'running') return this.#lifecycle.state;
    const { state } = this.#connection;
    return state === 'recovering' || state === 'degraded' ? state : 'watching';
  }

  /** How it is: plain data, fit for a health endpoint. Holds no content. */
  status(): WatcherStatus {
    const { cause, backend, restarts } = this.#connection;
    const running = this.#lifecycle.state === 'running';
    return {
      path: this.#target.path,
      state: this.state,
      target: this.#reporter.unreadable ? 'unreadable' : this.current.kind,
      revision: this.current.revision ?? null,
      backend: running ? backend : null,
      degraded:
        running && cause ? { code: cause.code, message: cause.message, sysctl: cause.sysctl ?? null } : null,
      restarts,
      checks: this.#loop.checks,
      ...this.#tally.report(),
    };
  }

  /**
   * Subscribes, then looks, then resolves; what is there was then reported. A second call returns the same
   * promise. That the target is missing or that native watching cannot be had is no failure.
   * @throws {ClosedError} (rejects) after or during `close()`; the signal's reason when that has aborted.
   */
  start(): Promise<void> {
    return this.#lifecycle.start();
  }

  /**
   * Looks now. Resolves when a check that began after this call has ended, its report made.
   * @throws {ClosedError} (rejects) when the watcher is not running.
   */
  async check(): Promise<void> {
    const { state } = this.#lifecycle;
    if (state !== 'running')
      throw new ClosedError(`Cannot look at "${this.#target.path}": the watcher is ${state}`);
    this.#target.touch?.();
    await this.#loop.checkNow('check');
  }

  /**
   * What the target is now, all of it at one instant, whatever was reported; needs no `start()`.
   * @throws {TargetError} (rejects) when it cannot be read, or never stands still (`ERR_TARGET_IO`).
   */
  snapshot(): Promise<Snapshot> {
    // A tree remembers what was touched, for the looks.
    const { recursive } = this.#options;
    return stableRead(recursive ? new TreeTarget(this.path, this.#options) : this.#target, this.#options);
  }

  /**
   * Resolves when no check is wanted or under way, and no attempt to subscribe. A difference that is still pendingPaths (a write that has to
   * settle, a target that may come back) waits for its time, not for this.
   */
  async idle(): Promise<void> {
    await this.#connection.idle();
    await this.#loop.idle();
  }

  /**
   * Ends watching. When it resolves no timer, handle or listener is left, and no event comes. May be called
   * twice, before `start()`, and within a listener. Never rejects.
   */
  close(): Promise<void> {
    return this.#lifecycle.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Changes as they come, the last one first. A slow consumer gets the newest state, not a backlog. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Change> {
    const { signal } = this.#options;
    const end = (): void => stream.end();
    const stream = new Latest<Change>(mergeChanges, () => {
      this.#streams.delete(stream);
      signal?.removeEventListener('abort', end);
    });
    if (this.#lastChange) stream.push(this.#lastChange);
    this.#streams.add(stream);
    // Before the start nobody else heeds it.
    signal?.addEventListener('abort', end, { once: true });
    if (this.#lifecycle.state === 'closed') stream.end();
    return stream;
  }

  #newLifecycle(): Lifecycle {
    const { signal } = this.#options;
    const closed = `Cannot start watching "${this.#target.path}": the watcher was closed; make a new one`;
    return new Lifecycle({
      signal,
      open: () => this.#connection.open(),
      run: async () => {
        await this.#loop.checkNow('start');
        if (!this.#scope.ended) this.#resync.start();
      },
      end: () => this.#end(),
      over: () => (signal?.aborted ? (signal.reason as Error) : new ClosedError(closed)),
    });
  }

  #end(): void {
    this.#resync.cancel();
    this.#reporter.close();
    this.#connection.close();
    this.#loop.close();
    for (const stream of [...this.#streams]) stream.end();
  }

  /** @param path where, if that is known. */
  #hint(cause: ChangeCause, path?: string): void {
    this.#target.touch?.(path);
    this.#request(cause);
  }

  #request(cause: ChangeCause): void {
    if (this.#lifecycle.state === 'running') this.#loop.request(cause);
  }

  #checkSafely(cause: ChangeCause): Promise<void> {
    const look = this.#check
      .take(cause)
      .then((isUnstable) => {
        if (isUnstable) this.#hint(cause);
      })
      .catch((error: unknown) => this.#fail(error));
    // A look at a dead server may never end, and has nothing to lose: close() waits for local ones only.
    return this.#observer.isLocal ? this.#scope.track(look) : look;
  }

  #found(seen: Found, cause: ChangeCause): void {
    this.#warn('limit', seen.limited);
    const examined = this.#mount.examine(seen, cause)?.then((message) => this.#warn('subPath', message));
    if (examined) void this.#scope.track(examined);
  }

  #warn(code: WatcherWarning['code'], message: string | undefined): void {
    if (this.#tally.warn(code, message) && message !== undefined) this.#tell('warning', { code, message });
  }

  #change(change: Change): void {
    this.#lastChange = change;
    this.#tally.changed(this.#options.clock.now(), change.cause);
    this.#tell('change', change);
    for (const stream of this.#streams) stream.push(change);
  }

  #degraded(degradation: Degradation): void {
    this.#tally.failed(this.#options.clock.now(), degradation.cause);
    this.#tell('degraded', degradation);
  }

  #fail(error: unknown): void {
    const failure = error instanceof Error ? error : new Error(String(error));
    this.#tally.failed(this.#options.clock.now(), failure);
    this.#tell('error', failure);
  }

  #tell<E extends keyof ResilientWatcherEvents>(event: E, ...args: ResilientWatcherEvents[E]): void {
    if (this.#lifecycle.state === 'closed') return;
    (this.emit as (event: E, ...args: ResilientWatcherEvents[E]) => boolean).call(this, event, ...args);
  }
}

/**
 * Starts watching a file.
 *
 * ```ts
 * await using watcher = await watch('/etc/policy/policy.yaml');
 * for await (const { current } of watcher) apply(current.content);
 * ```
 * @throws what the constructor and `start()` of `ResilientWatcher` throw.
 */
export async function watch(
  path: string | readonly string[],
  options?: ResilientWatcherOptions,
): Promise<ResilientWatcher> {
  const watcher = new ResilientWatcher(path, options);
  await watcher.start();
  return watcher;
}
