/**
 * The work of one watcher: every hint leads at once to a look, and every look to a comparison with the last report.
 *
 * | state     | a hint                                   | the look ends                                  |
 * |-----------|------------------------------------------|------------------------------------------------|
 * | `idle`    | → `looking`; → `waiting` if this turn of | –                                              |
 * |           | the event loop is spent                  |                                                |
 * | `waiting` | remembered; one look serves all of them  | –                                              |
 * | `looking` | remembered                               | → `idle`; if a hint is remembered, → `waiting` |
 *
 * | the look finds the target                | then                                                             |
 * |------------------------------------------|------------------------------------------------------------------|
 * | found, missing or unreadable             | it is compared (report.ts); the session listens to the consulted |
 * |                                          | directories, and looks again if some of them are new             |
 * | replaced during every attempt to read it | another look after a growing delay; `unreadable` when this has   |
 * |                                          | lasted for `missingGraceMs`                                      |
 * | in new directories in each round         | the same, but it is never `unreadable`                           |
 *
 * A look waits for each call on a mount that may hang, possibly for ever. Then it is in the state `looking`, and:
 *
 * | what comes                               | then                                                             |
 * |------------------------------------------|------------------------------------------------------------------|
 * | a hint, a tick, `check()`                | remembered; `check()` resolves after the next look               |
 * | `add()`, `remove()`                      | take effect in the next look, and resolve when that is reported  |
 * | `close()`                                | waits for nothing; the look ends with the call, and its result   |
 * |                                          | is not used                                                      |
 * | the mount is replaced or unmounted       | the call fails with ESTALE within a second, and the look tries   |
 * |                                          | again from the beginning of the path (fs/mounts.ts)              |
 */
import type { ListenerError } from '../core/errors.js';
import { Backoff } from '../core/backoff.js';
import type { Scheduled } from '../core/clock.js';
import { isTurnSpent, startTurnBudget } from '../core/event-loop.js';
import type { Lifetime } from '../core/lifetime.js';
import { run } from '../core/steps.js';
import { operations } from '../core/telemetry.js';
import type { Hint } from '../core/watch-backend.js';
import { answersOf, Disk } from '../fs/disk.js';
import { haveSameDirectories } from '../fs/consulted.js';
import { Mounts } from '../fs/mounts.js';
import { wider, type Extent, type Observation, type Target } from '../fs/observation.js';
import type { Snapshot } from '../fs/snapshot.js';
import { TargetError } from '../fs/target-error.js';
import { Activity } from './activity.js';
import { mergeCauses, type Change, type ChangeCause } from './change.js';
import { Connection } from './connection.js';
import { eventlessOf, isSameObservation, lookAt, type Looked, type VolumeTimes } from './look.js';
import { MountedFiles } from './mounted-files.js';
import { Reporter, type StableObservation } from './report.js';
import { Ticker, type TickerOptions } from './ticker.js';
import { inNextTurn, notInNextTurn } from './turns.js';
import { Warnings } from './warnings.js';
import type { WatcherEvent } from './watcher-events.js';
import type { ResolvedWatcherOptions } from './watcher-options.js';
import type { WatcherState, WatcherStatus } from './watcher-status.js';

/** The session's part of the status. */
type SessionStatus = Omit<WatcherStatus, 'name' | 'path' | 'state' | 'lastError'>;

/** What a look has led to. */
export type LookResult = 'unchanged' | 'changed' | 'unstable';

/** How often a look is repeated because it consulted new directories, or because a resync found something else. */
const MAX_ROUNDS = 5;

/** The initial and the maximum delay before another look at an unstable target, ms. */
const FIRST_RETRY_MS = 5;
const LONGEST_RETRY_MS = 1_000;

const checks = operations.check;

/** Looks, reports and listens on behalf of one watcher. */
export class Session {
  readonly #target: Target;
  readonly #options: ResolvedWatcherOptions;
  readonly #lifetime: Lifetime;
  readonly #emit: (event: WatcherEvent) => void;
  readonly #trace: (cause: ChangeCause, look: () => Promise<LookResult>) => Promise<LookResult>;
  readonly #reporter: Reporter;
  readonly #connection: Connection;
  readonly #warnings: Warnings;
  readonly #activity: Activity;
  #state: 'closed' | 'idle' | 'waiting' | 'looking' = 'closed';
  /** The cause of the next look; undefined: none is requested. */
  #cause: ChangeCause | undefined;
  #extent: Extent = 'hints';
  /** When the current look began, monotonic ms. */
  #beganAt = 0;
  /** The last observation that was compared. */
  #seen: Observation | undefined;
  readonly #mountedFiles = new MountedFiles();
  /** Another look, when a pending difference is due. */
  #nextLook: Scheduled | undefined;
  /** The version of the mount table at the last look. */
  #mountsVersion = 0;
  /** What the looks of a resync have found, in one turn each. It is compared once two of them have found the same. */
  #unconfirmed: readonly Observation[] = [];
  /** Set while every look finds the target replaced during each attempt. */
  #retries: Backoff | undefined;
  #retry: Scheduled | undefined;
  /** How many changes there were when the current look began. */
  #changesBefore = 0;

  /**
   * @param emit emits an event; `error` is for a failure that does not recover by itself.
   * @param trace runs a look as a traced operation.
   */
  constructor(
    target: Target,
    options: ResolvedWatcherOptions,
    lifetime: Lifetime,
    emit: (event: WatcherEvent) => void,
    trace: (cause: ChangeCause, look: () => Promise<LookResult>) => Promise<LookResult>,
  ) {
    this.#target = target;
    this.#options = options;
    this.#lifetime = lifetime;
    this.#emit = emit;
    this.#trace = trace;
    this.#warnings = new Warnings((payload) => emit({ name: 'warning', payload }));
    this.#activity = new Activity(options.clock);
    this.#connection = new Connection(target.path, options, this, lifetime);
    this.#reporter = new Reporter(target.path, options);
  }

  /** What was last reported; undefined before the first report. */
  get reported(): Snapshot | undefined {
    return this.#reporter.reported;
  }

  /** The state while it is running. */
  get state(): Extract<WatcherState, 'watching' | 'recovering' | 'degraded'> {
    const { state } = this.#connection;
    if (state === 'recovering' || state === 'degraded') return state;
    return state === 'suspended' ? 'degraded' : 'watching';
  }

  status(): SessionStatus {
    const { error, backend, restarts } = this.#connection;
    const { reported, unreadable } = this.#reporter;
    const isRunning = this.#state !== 'closed';
    const { resyncIntervalMs, pollIntervalMs } = this.#options;
    const pollsOnly = backend ? null : pollIntervalMs;
    return {
      target: unreadable ? 'unreadable' : (reported?.kind ?? null),
      revision: reported?.revision ?? null,
      backend: isRunning ? (backend?.name ?? 'poll') : null,
      degraded:
        isRunning && error
          ? { code: error.code, message: error.message, sysctl: error.sysctl ?? null }
          : null,
      restarts,
      ...this.#activity.status(),
      checkIntervalMs: isRunning ? (resyncIntervalMs > 0 ? resyncIntervalMs : pollsOnly) : null,
      watchedDirectories: this.#connection.directories.map(({ path }) => path),
      warnings: this.#warnings.current,
    };
  }

  /** The time from a change on the disk to its report, ms; undefined if unknown. */
  delayOf({ cause, current }: Change): number | undefined {
    const seen = this.#seen;
    if (cause === 'start' || seen?.kind !== 'found' || seen.snapshot !== current) return undefined;
    if (seen.publishedNs === undefined) return undefined;
    return Math.max(0, this.#options.clock.now() - Number(seen.publishedNs / 1_000n) / 1_000);
  }

  /**
   * Resolves after the first report. That comes with the first look, unless the target is in the gap of a swap, is being
   * written, or is replaced all the time.
   */
  async start(): Promise<void> {
    this.#state = 'idle';
    this.#activity.start();
    for (const path of this.#target.paths) await Mounts.of(this.#options.fs).ask(path);
    await this.#lookNow('start', 'all');
    while (!this.#lifetime.ended && !this.reported && this.#reporter.isPending)
      await this.#activity.nextLook();
    // The time of a pending difference may have come while the look went on.
    if (this.#cause !== undefined) await this.#activity.nextLook();
    if (!this.#lifetime.ended && this.#resync.intervalMs > 0) Ticker.start(this, this.#resync);
  }

  /** Resolves when a look at everything, begun after this call, has ended, and links of a group no longer wait. */
  async check(): Promise<void> {
    await this.#lookNow('check', 'all');
    while (!this.#lifetime.ended && this.#reporter.isPartlyRetargeted) await this.#activity.nextLook();
  }

  /** Resolves when everything that `add` and `remove` changed has been reported, or that the target is unreadable. */
  async regrouped(): Promise<void> {
    await this.#lookNow('check', 'hints');
    while (!this.#lifetime.ended && !this.#isRegroupReported) await this.#activity.nextLook();
  }

  /** Resolves when no look is requested or under way, and no attempt to subscribe is under way. */
  async idle(): Promise<void> {
    await this.#connection.idle();
    while (this.#state === 'waiting' || this.#state === 'looking') await this.#activity.nextLook();
  }

  /** Ends the session, once the lifetime has ended. A look that is under way may never end, so it is not awaited. */
  close(): void {
    this.#state = 'closed';
    Ticker.stop(this, this.#resync);
    notInNextTurn(this.#look);
    this.#retry?.cancel();
    this.#nextLook?.cancel();
    this.#connection.close();
    this.#activity.close();
  }

  report(event: WatcherEvent): void {
    if (event.name === 'change') this.#activity.changed(event.payload);
    this.#emit(event);
  }

  /** Something may have happened, where the hint says or anywhere. */
  hint(cause: ChangeCause, hint?: Hint): void {
    if (this.#state === 'closed') return;
    const isAnywhere = hint?.path === undefined;
    if (!isAnywhere) this.#target.touch(hint.path);
    this.#request(cause, isAnywhere ? 'all' : 'hints', hint?.event);
  }

  onTick(event: object): void {
    this.#request('resync', 'resync', event);
  }

  get #isRegroupReported(): boolean {
    const { isRegroupReported, unreadable } = this.#reporter;
    return this.#seen?.kind === 'unreadable' ? unreadable !== undefined : isRegroupReported;
  }

  get #resync(): TickerOptions {
    const { clock, resyncIntervalMs: intervalMs, persistent } = this.#options;
    return { clock, intervalMs, persistent };
  }

  #request(cause: ChangeCause, extent: Extent, event?: object): void {
    if (this.#state === 'closed') return;
    this.#extent = this.#cause === undefined ? extent : wider(this.#extent, extent);
    this.#cause = mergeCauses(this.#cause ?? cause, cause);
    if (this.#state !== 'idle') return;
    if (isTurnSpent()) this.#wait();
    else this.#look(event);
  }

  #wait(): void {
    this.#state = 'waiting';
    inNextTurn(this.#look);
  }

  async #lookNow(cause: ChangeCause, extent: Extent): Promise<void> {
    const ended = this.#activity.newLook();
    this.#request(cause, extent);
    await ended;
  }

  /** Makes one look for all requests. */
  readonly #look = (event?: object): void => {
    const cause = this.#cause;
    const extent = this.#extent;
    this.#cause = undefined;
    if (cause === undefined) return;
    this.#state = 'looking';
    this.#activity.lookBegins();
    this.#changesBefore = this.#activity.changes;
    try {
      // Without a subscriber nothing has to be awaited.
      const looked = checks.hasSubscribers
        ? this.#trace(cause, async () => this.#resultOf(await this.#round(cause, extent, event, 1)))
        : this.#round(cause, extent, event, 1);
      if (looked instanceof Promise) looked.then(this.#end, this.#failed);
      else this.#end();
    } catch (error) {
      this.#failed(error);
    }
  };

  #resultOf(isStable: boolean): LookResult {
    if (!isStable) return 'unstable';
    return this.#activity.changes > this.#changesBefore ? 'changed' : 'unchanged';
  }

  readonly #failed = (error: unknown): void => {
    this.#emit({ name: 'error', payload: error as ListenerError });
    this.#end();
  };

  readonly #end = (): void => {
    if (this.#state === 'closed') return;
    this.#state = 'idle';
    // After the report, because scheduling the end of the budget takes as long as three lookups. A long look starts it itself.
    startTurnBudget();
    // In a later turn: if every look causes another hint, everything else must still get its turn.
    if (this.#cause !== undefined) this.#wait();
    this.#activity.lookEnds();
  };

  /** Looks once, and again if that consulted new directories. Returns whether the target was stable. */
  #round(
    cause: ChangeCause,
    extent: Extent,
    event: object | undefined,
    round: number,
  ): boolean | Promise<boolean> {
    const { fs, clock } = this.#options;
    const mounts = Mounts.of(fs);
    this.#beganAt = clock.monotonic();
    for (const path of this.#reporter.pathsDueAt(this.#beganAt, this.#seen)) this.#target.touch(path);
    const disk = new Disk(fs, mounts, clock, event && answersOf(event, fs));
    const look = lookAt(this.#target, extent, this.reported, this.#mountedFiles, mounts, disk);
    const looked = run(look, () => this.#state === 'closed');
    return looked instanceof Promise
      ? looked.then((found) => this.#found(found, cause, mounts, round))
      : this.#found(looked, cause, mounts, round);
  }

  #found(looked: Looked, cause: ChangeCause, mounts: Mounts, round: number): boolean | Promise<boolean> {
    if (this.#state === 'closed') return true;
    const { seen, volumeTimes, consulted } = looked;
    if (seen.kind === 'unstable') return this.#unstable(cause);
    const isNew = !isSameObservation(seen, this.#seen) || this.#reporter.isPending;
    // Most looks find nothing new to listen to: then the array stays the same, too.
    const isElsewhere = !haveSameDirectories(consulted, this.#connection);
    // A change made in this turn causes its event in the next turn, in a directory that this look may no longer consult. A
    // resync should find only what no event reports.
    const isConfirmed =
      isSameObservation(seen, this.#unconfirmed.at(-1)) || this.#unconfirmed.length === MAX_ROUNDS;
    if ((isNew || isElsewhere) && cause === 'resync' && !isConfirmed) {
      this.#unconfirmed = [...this.#unconfirmed, seen];
      this.#request('resync', 'hints');
      return true;
    }
    this.#seen = seen;
    if (isNew) this.#compare(seen, cause, volumeTimes);
    // A listener may have closed the watcher.
    if (this.#lifetime.ended) return true;
    this.#unconfirmed = [];
    const { directories } = isElsewhere ? consulted : this.#connection;
    // The same observation may come through a mount that was not in the table before.
    const areMountsNew = mounts.version !== this.#mountsVersion;
    this.#mountsVersion = mounts.version;
    const eventless =
      isElsewhere || areMountsNew ? eventlessOf(seen, directories, mounts) : this.#connection.eventless;
    if (seen.kind === 'found' && (isNew || isElsewhere || areMountsNew)) this.#warnings.found(seen, mounts);
    const opened = this.#connection.listen(directories, eventless);
    return opened instanceof Promise
      ? opened.then((paths) => this.#listening(paths, cause, round))
      : this.#listening(opened, cause, round);
  }

  /** @param opened the directories that were not watched before. */
  #listening(opened: readonly string[], cause: ChangeCause, round: number): boolean | Promise<boolean> {
    if (opened.length === 0 || this.#lifetime.ended) return this.#stable();
    if (round === MAX_ROUNDS) return this.#lookLater(cause);
    for (const path of opened) this.#target.touch(path);
    return this.#round(this.#afterStart(cause), 'hints', undefined, round + 1);
  }

  /** What a later look finds first is not a change of the start. */
  #afterStart(cause: ChangeCause): ChangeCause {
    return cause === 'start' ? (this.#connection.backend?.name ?? 'poll') : cause;
  }

  #stable(): true {
    this.#retry?.cancel();
    this.#retries = undefined;
    return true;
  }

  #lookLater(cause: ChangeCause): false {
    const { clock, random, persistent } = this.#options;
    this.#retries ??= new Backoff({ firstDelayMs: FIRST_RETRY_MS, maxDelayMs: LONGEST_RETRY_MS, random });
    this.#retry?.cancel();
    this.#retry = clock.schedule(() => this.hint(cause), this.#retries.next(), { ref: persistent });
    return false;
  }

  #unstable(cause: ChangeCause): false {
    this.#lookLater(cause);
    const { path } = this.#target;
    const message = `Cannot read "${path}": it was replaced during every attempt to read it; the watcher tries again`;
    const error = new TargetError('ERR_TARGET_IO', path, message);
    this.#seen = { kind: 'unreadable', error, consulted: { directories: [] } };
    this.#compare(this.#seen, cause, new Map());
    return false;
  }

  /** Compares, reports what is due, and looks again when something else is. */
  #compare(seen: StableObservation, cause: ChangeCause, volumeTimes: VolumeTimes): void {
    const { clock, persistent } = this.#options;
    const now = clock.monotonic();
    this.#nextLook?.cancel();
    const { events, nextAt } = this.#reporter.consider(
      seen,
      { cause, number: this.#activity.checks, beganAt: this.#beganAt, now },
      volumeTimes,
    );
    for (const event of events) this.report(event);
    // A listener may have closed the watcher.
    if (nextAt === Infinity || this.#lifetime.ended) return;
    const lookAgain = (): void => this.#request(this.#afterStart(cause), 'hints');
    this.#nextLook = clock.schedule(lookAgain, nextAt - now, { ref: persistent });
  }
}
