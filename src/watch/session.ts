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
import type { ListenerError } from '../core/errors/errors.js';
import { Backoff } from '../core/scheduling/backoff.js';
import type { Scheduled } from '../core/ports/clock.js';
import { isTurnSpent, startTurnBudget } from '../core/scheduling/event-loop.js';
import type { Lifetime } from '../core/lifecycle/lifetime.js';
import { NextOutcome } from '../core/scheduling/outcome.js';
import { run, wait, type Answer, type Steps } from '../core/scheduling/steps.js';
import { operationChannel } from '../core/telemetry/telemetry.js';
import type { Hint } from '../core/ports/watch-backend.js';
import { answersOf, Disk } from '../fs/disk.js';
import { haveSameDirectories, type Consulted } from '../fs/consulted.js';
import { Mounts } from '../fs/mounts.js';
import { wider, type Extent, type Observation, type Target } from '../fs/observation.js';
import type { Snapshot } from '../fs/snapshot.js';
import { TargetError } from '../fs/target-error.js';
import { mergeCauses, type Change, type ChangeCause } from './change.js';
import { Connection } from './connection.js';
import {
  delayUntil,
  eventlessOf,
  isSameObservation,
  MountedFiles,
  NO_TIMES,
  volumesOfGone,
  warningsOf,
  type VolumeTimes,
} from './look.js';
import type { Look } from './pending.js';
import { Reporter, type StableObservation } from './report.js';
import { tickEvery } from './ticker.js';
import { inNextTurn, notInNextTurn } from './turns.js';
import type { WatcherEvent, WatcherWarning } from './watcher-events.js';
import type { ResolvedWatcherOptions } from './watcher-options.js';
import type { WatcherStatus } from './watcher-status.js';

/** The session's part of the status. */
type SessionStatus = Omit<WatcherStatus, 'name' | 'path' | 'state' | 'lastError'>;

/** What a session has done so far. */
type Counts = {
  -readonly [K in 'checks' | 'changes' | 'resyncs' | 'lastChangeAt' | 'lastCheckAt']: WatcherStatus[K];
};

/** What a look has led to. */
export type LookResult = 'unchanged' | 'changed' | 'unstable';

/** How often a look is repeated because it consulted new directories, or because a resync found something else. */
const MAX_ROUNDS = 5;

/** The initial and the maximum delay before another look at an unstable target, ms. */
const FIRST_RETRY_MS = 5;
const LONGEST_RETRY_MS = 1_000;

/**
 * How old the mount table may be when an event is followed, ms: more than the interval of a resync, which reads it. To read
 * it takes as long as a third of everything else that a swap leads to.
 */
const EVENT_TABLE_AGE_MS = 6_000;

const checks = operationChannel('check');

/** Looks, reports and listens on behalf of one watcher. */
export class Session {
  readonly emit: (event: WatcherEvent) => void;
  readonly #target: Target;
  readonly #options: ResolvedWatcherOptions;
  readonly #lifetime: Lifetime;
  readonly #trace: (cause: ChangeCause, look: () => Promise<LookResult>) => Promise<LookResult>;
  readonly #reporter: Reporter;
  readonly #connection: Connection;
  readonly #mountedFiles = new MountedFiles();
  #state: 'closed' | 'idle' | 'waiting' | 'looking' = 'closed';
  /** The cause of the next look; undefined: none is requested. */
  #cause: ChangeCause | undefined;
  #extent: Extent = 'hints';
  /** The last observation that was compared. */
  #seen: Observation | undefined;
  /** What the looks of a resync have found, in one turn each. It is compared once two of them have found the same. */
  #unconfirmed: readonly Observation[] = [];
  #warnings: readonly WatcherWarning[] = [];
  /** See `MountedFiles.in`. */
  #stale: readonly string[] = [];
  /** What the last look that was compared has consulted. */
  #consulted: Consulted = { directories: [] };
  /** Another look, when a pending difference is due. */
  #nextLook: Scheduled | undefined;
  /** Set while every look finds the target replaced during each attempt. */
  #retries: Backoff | undefined;
  #retry: Scheduled | undefined;
  #stopResync: (() => void) | undefined;
  /** The end of the current look or, if there is none, of the next one. */
  readonly #looked = new NextOutcome<void>();
  /** When the last look ended, monotonic ms; before the first one, the start. */
  #lookedAt: number | undefined;
  readonly #counts: Counts = { checks: 0, changes: 0, resyncs: 0, lastChangeAt: null, lastCheckAt: null };

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
    this.emit = emit;
    this.#trace = trace;
    this.#connection = new Connection(target.path, options, this, lifetime);
    this.#reporter = new Reporter(target.path, options);
  }

  /** What was last reported; undefined before the first report. */
  get reported(): Snapshot | undefined {
    return this.#reporter.reported;
  }

  readonly #hasEnded = (): boolean => this.#lifetime.ended;

  /** The state while it is running. */
  get state(): Connection['state'] {
    return this.#connection.state;
  }

  status(): SessionStatus {
    const { backend, pollsMs, degraded, restarts, directories } = this.#connection;
    const { reported, unreadable } = this.#reporter;
    const isRunning = this.#state !== 'closed';
    const { clock, resyncIntervalMs } = this.#options;
    return {
      target: unreadable ? 'unreadable' : (reported?.kind ?? null),
      revision: reported?.revision ?? null,
      backend: isRunning ? (backend?.name ?? 'poll') : null,
      degraded: isRunning ? degraded : null,
      restarts,
      ...this.#counts,
      sinceLastCheckMs: this.#lookedAt === undefined ? null : clock.monotonic() - this.#lookedAt,
      checkIntervalMs: isRunning ? (pollsMs ?? (resyncIntervalMs || null)) : null,
      watchedDirectories: directories.map(({ path }) => path),
      warnings: this.#warnings,
    };
  }

  /** The time from a change on the disk to its report, ms; undefined if unknown. */
  delayOf(change: Change): number | undefined {
    return delayUntil(this.#options.clock.now(), change, this.#seen);
  }

  /**
   * Resolves after the first report. That comes with the first look, unless the target is in the gap of a swap, is being
   * written, or is replaced all the time.
   */
  async start(): Promise<void> {
    const { clock, resyncIntervalMs: intervalMs, persistent } = this.#options;
    this.#state = 'idle';
    this.#lookedAt = clock.monotonic();
    await Mounts.of(this.#options.fs).askAll(this.#target.paths);
    await this.#lookNow('start', 'all');
    await this.#until(() => this.reported !== undefined || this.#reporter.nextAt === Infinity);
    // The time of a pending difference may have come while the look went on.
    const { checks } = this.#counts;
    await this.#until(() => this.#cause === undefined || this.#counts.checks > checks);
    if (this.#lifetime.ended || intervalMs === 0) return;
    const tick = (event: object): void => this.#request('resync', 'resync', event);
    this.#stopResync = tickEvery({ clock, intervalMs, persistent }, tick);
  }

  /** Resolves when a look at everything, begun after this call, has ended, and links of a group no longer wait. */
  async check(): Promise<void> {
    await this.#lookNow('check', 'all');
    await this.#until(() => !this.#reporter.isPartlyRetargeted);
  }

  /** Resolves when everything that `add` and `remove` changed has been reported, or that the target is unreadable. */
  async regrouped(): Promise<void> {
    await Mounts.of(this.#options.fs).askAll(this.#target.paths);
    await this.#lookNow('check', 'hints');
    await this.#until(() => {
      const { isRegroupReported, unreadable } = this.#reporter;
      return this.#seen?.kind === 'unreadable' ? unreadable !== undefined : isRegroupReported;
    });
  }

  /** Resolves when no look is requested or under way, and no attempt to subscribe is under way. */
  async idle(): Promise<void> {
    await this.#connection.idle();
    while (this.#state === 'waiting' || this.#state === 'looking') await this.#looked.promise;
  }

  /** Ends the session, once the lifetime has ended. A look that is under way may never end, so it is not awaited. */
  close(): void {
    this.#state = 'closed';
    this.#stopResync?.();
    notInNextTurn(this.#look);
    this.#retry?.cancel();
    this.#nextLook?.cancel();
    this.#connection.close();
    this.#looked.resolve();
  }

  /** Something may have happened, where the hint says or anywhere. */
  hint(cause: ChangeCause, hint?: Hint): void {
    const isAnywhere = hint?.path === undefined;
    if (!isAnywhere) this.#target.touch(hint.path);
    this.#request(cause, isAnywhere ? 'all' : 'hints', hint?.event);
  }

  #request(cause: ChangeCause, extent: Extent, event?: object): void {
    if (this.#state === 'closed') return;
    this.#extent = this.#cause === undefined ? extent : wider(this.#extent, extent);
    this.#cause = this.#cause === undefined ? cause : mergeCauses(this.#cause, cause);
    if (this.#state !== 'idle') return;
    if (isTurnSpent()) this.#wait();
    else this.#look(event);
  }

  #wait(): void {
    this.#state = 'waiting';
    inNextTurn(this.#look);
  }

  /** Resolves when a look that begins after this call has ended. */
  #lookNow(cause: ChangeCause, extent: Extent): Promise<void> {
    const checks = this.#counts.checks + (this.#state === 'looking' ? 2 : 1);
    this.#request(cause, extent);
    return this.#until(() => this.#counts.checks >= checks);
  }

  /** Resolves when this is so after a look, or at the end. */
  async #until(isSo: () => boolean): Promise<void> {
    while (!this.#lifetime.ended && !isSo()) await this.#looked.promise;
  }

  /** Makes one look for all requests. */
  readonly #look = (event?: object): void => {
    const cause = this.#cause;
    const extent = this.#extent;
    this.#cause = undefined;
    if (cause === undefined) return;
    this.#state = 'looking';
    try {
      const look = (): Answer<LookResult> => run(this.#rounds(cause, extent, event), this.#hasEnded);
      // Without a subscriber nothing has to be awaited.
      const result = checks.hasSubscribers ? this.#trace(cause, async () => look()) : look();
      if (result instanceof Promise) result.then(this.#end, this.#failed);
      else this.#end();
    } catch (error) {
      this.#failed(error);
    }
  };

  readonly #failed = (error: unknown): void => {
    this.emit({ name: 'error', payload: error as ListenerError });
    this.#end();
  };

  readonly #end = (): void => {
    if (this.#state === 'closed') return;
    this.#state = 'idle';
    // After the report, because scheduling the end of the budget takes as long as three lookups. A long look starts it
    // itself.
    startTurnBudget();
    // In a later turn: if every look causes another hint, everything else must still get its turn.
    if (this.#cause !== undefined) this.#wait();
    const { clock } = this.#options;
    this.#counts.checks += 1;
    this.#counts.lastCheckAt = clock.now();
    this.#lookedAt = clock.monotonic();
    this.#looked.resolve();
  };

  /** Looks once, and again if that consulted new directories. */
  *#rounds(cause: ChangeCause, extent: Extent, event: object | undefined): Steps<LookResult> {
    const { fs, clock } = this.#options;
    const mounts = Mounts.of(fs, extent === 'hints' ? EVENT_TABLE_AGE_MS : undefined);
    const { changes } = this.#counts;
    for (let round = 1; !this.#lifetime.ended; round += 1) {
      if (round > MAX_ROUNDS) return this.#lookLater(cause);
      const beganAt = clock.monotonic();
      for (const path of this.#reporter.pathsDueAt(beganAt, this.#seen)) this.#target.touch(path);
      const disk = new Disk(fs, mounts, clock, event && round === 1 ? answersOf(event, fs) : undefined);
      const seen = yield* this.#target.look(extent, disk);
      const volumeTimes = yield* volumesOfGone(this.reported, seen, disk);
      const look = { cause, number: this.#counts.checks, beganAt, now: clock.monotonic() };
      if (seen.kind === 'unstable') return yield* this.#unstable(look);
      const opened = yield* this.#found(seen, volumeTimes, look, mounts, disk);
      if (opened.length === 0) break;
      for (const path of opened) this.#target.touch(path);
      cause = this.#afterStart(cause);
      extent = 'hints';
    }
    this.#retry?.cancel();
    this.#retries = undefined;
    return this.#counts.changes > changes ? 'changed' : 'unchanged';
  }

  /** Compares what a look has found, and listens to what it has consulted. Returns what was not watched before. */
  *#found(
    seen: StableObservation,
    volumeTimes: VolumeTimes,
    look: Look,
    mounts: Mounts,
    disk: Disk,
  ): Steps<readonly string[]> {
    const isNew = !isSameObservation(seen, this.#seen) || this.#reporter.nextAt < Infinity;
    // A change made in this turn causes its event in the next turn, in a directory that this look may no longer consult. A
    // resync should find only what no event reports. What `add` and `remove` have changed is told to one look only.
    const mayWait = look.cause === 'resync' && !seen.isRegrouped;
    if (mayWait && (isNew || !haveSameDirectories(seen.consulted, this.#consulted))) {
      if (!isSameObservation(seen, this.#unconfirmed.at(-1)) && this.#unconfirmed.length < MAX_ROUNDS) {
        this.#unconfirmed = [...this.#unconfirmed, seen];
        this.#request('resync', 'hints');
        return [];
      }
    }
    if (isNew) yield* this.#compare(seen, look, volumeTimes);
    this.#unconfirmed = [];
    this.#consulted = seen.consulted;
    // After the report, which needs none of it.
    const { consulted, stale } = yield* this.#mountedFiles.in(seen, mounts, disk);
    // Most looks find nothing new to listen to: then the array stays the same, too.
    const isElsewhere = !haveSameDirectories(consulted, this.#connection);
    // The same observation may come through a mount that was not in the table before.
    const isOther = isElsewhere || stale !== this.#stale;
    // What is gone for a moment is still what was warned of.
    const isKnown = seen.kind === 'found' || seen.kind === this.reported?.kind;
    if (isKnown && (isNew || isOther)) this.#warn(warningsOf(seen, stale));
    // A listener may have closed the watcher.
    if (this.#lifetime.ended) return [];
    this.#stale = stale;
    const { directories } = isElsewhere ? consulted : this.#connection;
    const eventless = isOther ? eventlessOf(seen, directories, mounts) : this.#connection.eventless;
    return yield* wait(this.#connection.listen(directories, eventless));
  }

  /** What a later look finds first is not a change of the start. */
  #afterStart(cause: ChangeCause): ChangeCause {
    return cause === 'start' ? (this.#connection.backend?.name ?? 'poll') : cause;
  }

  #lookLater(cause: ChangeCause): LookResult {
    const { clock, random, persistent } = this.#options;
    this.#retries ??= new Backoff({ firstDelayMs: FIRST_RETRY_MS, maxDelayMs: LONGEST_RETRY_MS, random });
    this.#retry?.cancel();
    const lookAgain = (): void => this.#request(cause, 'all');
    this.#retry = clock.schedule(lookAgain, this.#retries.next(), { ref: persistent });
    return 'unstable';
  }

  *#unstable(look: Look): Steps<LookResult> {
    const { path } = this.#target;
    const message = `Cannot read "${path}": it was replaced during every attempt to read it; the watcher tries again`;
    const error = new TargetError('ERR_TARGET_IO', path, message);
    // First, because a listener may close the watcher.
    const result = this.#lookLater(look.cause);
    yield* this.#compare({ kind: 'unreadable', error, consulted: { directories: [] } }, look, NO_TIMES);
    return result;
  }

  /** Compares the observation with the last report, reports what is due, and plans the look for what is due later. */
  *#compare(seen: StableObservation, look: Look, volumeTimes: VolumeTimes): Steps<void> {
    const { clock, persistent } = this.#options;
    this.#seen = seen;
    this.#nextLook?.cancel();
    for (const event of yield* this.#reporter.consider(seen, look, volumeTimes)) {
      if (event.name === 'change') {
        this.#counts.changes += 1;
        this.#counts.lastChangeAt = clock.now();
        if (event.payload.cause === 'resync') this.#counts.resyncs += 1;
      }
      this.emit(event);
    }
    // A listener may have closed the watcher.
    const { nextAt } = this.#reporter;
    if (nextAt === Infinity || this.#lifetime.ended) return;
    const lookAgain = (): void => this.#request(this.#afterStart(look.cause), 'hints');
    this.#nextLook = clock.schedule(lookAgain, Math.max(0, nextAt - clock.monotonic()), { ref: persistent });
  }

  /** Each warning is emitted when it is new. */
  #warn(warnings: readonly WatcherWarning[]): void {
    const before = this.#warnings.map(({ message }) => message);
    this.#warnings = warnings;
    for (const payload of warnings)
      if (!before.includes(payload.message)) this.emit({ name: 'warning', payload });
  }
}
