/**
 * The work of one watcher: every hint leads to a check, and every check to an observation that the reporter compares
 * with what was last reported.
 *
 * | the check finds the target                   | then                                                             |
 * |----------------------------------------------|------------------------------------------------------------------|
 * | found, missing or unreadable                 | it goes to the reporter (report/reporter.ts); the directories to |
 * |                                              | watch are set, and what was not watched before is checked again  |
 * | unstable in every attempt, or always in      | checked again after a delay that grows; `unreadable` when no     |
 * | directories that were not watched before     | check has succeeded for `missingGraceMs`                         |
 * | on a file system that gives no events        | the connection is suspended: the target is polled                |
 *
 * Early-report.ts has the table of what is reported before the check, watched-directories.ts that of the directories,
 * check-loop.ts says when checks begin, connection.ts where hints come from.
 */
import type { Scope } from '../core/scope.js';
import { nextTurn } from '../core/event-loop.js';
import { operationChannel } from '../core/telemetry.js';
import { Ticker, type TickerOptions, type Ticking } from '../core/ticker.js';
import type { Hint, WatchBackend, WatchSubscription } from '../core/watch-backend.js';
import { runPausing } from '../fs/effects.js';
import type { Target } from '../fs/observation.js';
import { Observer } from '../fs/observer.js';
import type { Snapshot } from '../fs/snapshot.js';
import { backendsFor } from './backends/catalog.js';
import type { Change, ChangeCause } from './change.js';
import { changeDelayMs } from './change-delay.js';
import { CheckLoop, type Checker } from './check-loop.js';
import { BackendConnection, type ConnectionOwner } from './connection.js';
import { EarlyReport, type HintNoter } from './early-report.js';
import { Instability } from './instability.js';
import { InPlaceWrites } from './report/in-place-writes.js';
import { Reporter, type ReportOwner } from './report/reporter.js';
import { MAX_ROUNDS, WatchedDirectories } from './watched-directories.js';
import { Warnings } from './warnings.js';
import type { WatcherEvent } from './watcher-events.js';
import type { ResolvedWatcherOptions } from './watcher-options.js';
import type { WatcherState, WatcherStatus } from './watcher-status.js';

/** The watcher that the session works for. */
export interface SessionOwner {
  /** Emits an event; `error`: a failure that does not heal by itself. */
  report(event: WatcherEvent): void;
  /** Does a check and publishes it as an operation. */
  traced<T>(cause: ChangeCause, check: () => Promise<T>, resultOf: (value: T) => string): Promise<T>;
}

/** The session's part of the status. */
type SessionStatus = Omit<WatcherStatus, 'name' | 'path' | 'state' | 'lastError'>;

/** A hint that does not say where. */
const NOWHERE: Hint = {};

/** Check loop, observation and report for one target. */
export class WatchSession implements Checker<ChangeCause>, ConnectionOwner, HintNoter, ReportOwner, Ticking {
  readonly #path: string;
  readonly #options: ResolvedWatcherOptions;
  readonly #scope: Scope;
  readonly #owner: SessionOwner;
  readonly #observer: Observer;
  readonly #writes = new InPlaceWrites();
  readonly #reporter: Reporter;
  readonly #early: EarlyReport;
  readonly #directories: WatchedDirectories;
  readonly #connection: BackendConnection;
  readonly #loop: CheckLoop<ChangeCause>;
  readonly #warnings: Warnings;
  /** While no check succeeds. */
  #instability: Instability | undefined;
  #running = false;
  /** The check that is under way. */
  #checking: Promise<void> | undefined;
  #changes = 0;
  /** As many as there were when the last check had ended. */
  #changesBefore = 0;
  #resyncs = 0;
  #lastChangeAt: number | null = null;
  #lastCheckAt: number | null = null;
  /** The same, by the monotonic clock. */
  #lastCheckTime = 0;

  constructor(target: Target, options: ResolvedWatcherOptions, scope: Scope, owner: SessionOwner) {
    const { fs } = options;
    const { path } = target;
    this.#path = path;
    this.#options = options;
    this.#scope = scope;
    this.#owner = owner;
    this.#observer = new Observer(target, fs);
    this.#warnings = new Warnings(fs, scope, this);
    this.#loop = new CheckLoop(this, scope);
    this.#reporter = new Reporter(path, options, this, this.#writes);
    this.#early = new EarlyReport(this, this.#loop, this.#observer, this.#reporter);
    this.#directories = new WatchedDirectories(path, this.#observer, this.#writes, scope);
    this.#connection = new BackendConnection(path, options, this, scope);
  }

  /** What was last reported; undefined before the first check. */
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
    return {
      target: unreadable ? 'unreadable' : (reported?.kind ?? null),
      revision: reported?.revision ?? null,
      backend: this.#running ? (backend?.name ?? 'poll') : null,
      degraded:
        this.#running && error
          ? { code: error.code, message: error.message, sysctl: error.sysctl ?? null }
          : null,
      restarts,
      checks: this.#loop.checks,
      changes: this.#changes,
      resyncs: this.#resyncs,
      lastChangeAt: this.#lastChangeAt,
      lastCheckAt: this.#lastCheckAt,
      sinceLastCheckMs:
        this.#lastCheckAt === null ? null : this.#options.clock.monotonic() - this.#lastCheckTime,
      checkIntervalMs: this.#checkIntervalMs,
      watchedDirectories: this.#directories.paths,
      warnings: this.#warnings.current,
    };
  }

  /** How long after it was made a change is reported, ms; see `changeDelayMs`. */
  delayOf(change: Change): number | undefined {
    const { fs, clock } = this.#options;
    return this.#observer.isLocal ? changeDelayMs(change, fs.sync, clock.now()) : undefined;
  }

  /** Subscribes. */
  open(): Promise<void> {
    return this.#connection.open();
  }

  /** Resolves after the first check. */
  async run(): Promise<void> {
    this.#running = true;
    await this.#loop.checkNow('start');
    if (!this.#scope.ended && this.#resync.intervalMs > 0) Ticker.start(this, this.#resync);
  }

  /** Resolves when a check of everything that began after this call has ended. */
  async check(): Promise<void> {
    this.#observer.touch();
    await this.checkTouched();
  }

  /** Resolves when a check that began after this call has ended, of what the target knows to be touched. */
  async checkTouched(): Promise<void> {
    await this.#loop.checkNow('check');
  }

  /** Resolves when no check is requested or under way, and no attempt to subscribe. */
  async idle(): Promise<void> {
    await this.#connection.idle();
    await this.#loop.idle();
  }

  /** Ends it, once the scope has ended. Returns what has to be awaited. */
  close(): Promise<void> | undefined {
    this.#running = false;
    Ticker.stop(this, this.#resync);
    this.#instability?.close();
    this.#reporter.close();
    this.#connection.close();
    this.#loop.close();
    // A check on a dead server may never end, and there is nothing to lose.
    return this.#observer.isLocal ? this.#checking : undefined;
  }

  get #checkIntervalMs(): number | null {
    const { resyncIntervalMs, pollIntervalMs } = this.#options;
    if (!this.#running) return null;
    if (resyncIntervalMs > 0) return resyncIntervalMs;
    return this.#connection.backend ? null : pollIntervalMs;
  }

  report(event: WatcherEvent): void {
    if (event.name === 'change') {
      this.#lastChangeAt = this.#options.clock.now();
      this.#changes += 1;
      if (event.payload.cause === 'resync') this.#resyncs += 1;
    }
    this.#owner.report(event);
  }

  hint(cause: ChangeCause, hint: Hint = NOWHERE): void {
    this.#early.hinted(cause, hint);
  }

  get mayReadEarly(): boolean {
    return this.#running && !this.#instability;
  }

  get reportsWrites(): boolean {
    return this.#connection.backend?.reportsWrites === true;
  }

  note(cause: ChangeCause, { path, written = false }: Hint): void {
    if (cause === 'resync') this.#observer.resync();
    else this.#observer.touch(path);
    if (path !== undefined && this.#loop.state !== 'checking' && !this.#isConcerned(path)) return;
    // Only if a check follows, which clears the record.
    if (path !== undefined && written) this.#writes.reported(path);
    else if (path !== undefined && this.reportsWrites) this.#writes.moved(path);
    this.checkAgain(cause);
  }

  checkAgain(cause: ChangeCause): void {
    if (this.#running) this.#loop.request(cause);
  }

  onTick(): void {
    this.hint('resync');
  }

  backends(): Iterable<WatchBackend> {
    return backendsFor(this.#options.backend, this.#options, { isTree: this.#options.recursive !== false });
  }

  arm(subscription: WatchSubscription, backend: WatchBackend): Promise<void> {
    return this.#directories.arm(subscription, backend);
  }

  /**
   * Handles the usual case of a resync, in which nothing has changed, without a promise, since a thousand watchers
   * resync in the same turn. If the operation has subscribers, the ordinary check is made instead.
   */
  resyncAtOnce(): boolean {
    if (operationChannel('check').hasSubscribers) return false;
    this.#beginObservation();
    if (!this.#isUnchanged()) return false;
    this.#checked();
    return true;
  }

  async checkBecause(cause: ChangeCause): Promise<void> {
    this.#checking = this.#check(cause);
    await this.#checking;
    this.#checking = undefined;
  }

  /**
   * Whether a hint about this path can be one of a change. A backend that merges events may have dropped others: of a link
   * that was created and removed in one batch, and was seen in between, it reports nothing.
   */
  #isConcerned(path: string): boolean {
    return !this.reportsWrites || this.#observer.isConcerned(path);
  }

  get #resync(): TickerOptions {
    const { clock, resyncIntervalMs: intervalMs, persistent } = this.#options;
    return { clock, intervalMs, persistent };
  }

  async #check(cause: ChangeCause): Promise<void> {
    const resultOf = (isStable: boolean): string => {
      if (!isStable) return 'unstable';
      return this.#changes > this.#changesBefore ? 'changed' : 'unchanged';
    };
    try {
      if (await this.#owner.traced(cause, () => this.#observeAndReport(cause), resultOf)) this.#stable();
      else if (!this.#scope.ended) this.#unstable(cause);
    } catch (error) {
      this.#owner.report({ name: 'error', payload: error as Error });
    }
    this.#checked();
  }

  /** Resolves to whether the target stood still. */
  async #observeAndReport(cause: ChangeCause): Promise<boolean> {
    const observer = this.#observer;
    this.#beginObservation();
    this.#early.checking(cause);
    if (cause === 'resync') {
      if (this.#isUnchanged()) return true;
    } else {
      const swap = observer.observeSwap();
      const isDone = !swap || this.#consider(swap, cause);
      if (isDone !== true && !(await isDone)) return false;
    }
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const seen = await observer.observe(this.#options.clock.monotonic());
      // What was changed in this turn causes its event in the next one, and a resync is to find only what no event reports.
      if (cause === 'resync') await nextTurn();
      if (this.#scope.ended || seen.kind === 'unstable' || seen.kind === 'disallowed') return false;
      if (!(await this.#consider(seen, cause))) return false;
      this.#writes.endObservation(this.#reporter.pendingPaths);
      if (seen.kind === 'found') this.#warnings.found(seen, cause);
      const opened = await this.#directories.set(seen.chain, this.#connection);
      if (opened.length === 0) return true;
      for (const path of opened) this.#observer.touch(path);
      this.#beginObservation();
    }
    return false;
  }

  /** Whether it was done before the end of the session. */
  #consider(seen: Parameters<Reporter['consider']>[0], cause: ChangeCause): true | Promise<boolean> {
    const considering = this.#reporter.consider(seen, this.#loop.explain(cause));
    return runPausing(considering, () => this.#scope.ended);
  }

  /**
   * Changes that this cannot see cause a hint. If the hint is lost as well, the only effect is that watches are set
   * late.
   */
  #isUnchanged(): boolean {
    const isUnchanged = this.#observer.isUnchanged();
    return isUnchanged && !this.#reporter.hasPending && !this.#instability;
  }

  #checked(): void {
    this.#early.checked();
    this.#changesBefore = this.#changes;
    const { clock } = this.#options;
    this.#lastCheckAt = clock.now();
    this.#lastCheckTime = clock.monotonic();
  }

  #beginObservation(): void {
    this.#writes.beginObservation(this.reportsWrites);
  }

  #stable(): void {
    this.#instability?.close();
    this.#instability = undefined;
  }

  #unstable(cause: ChangeCause): void {
    this.#instability ??= new Instability(this.#path, this.#options);
    const error = this.#instability.unstable(() => this.hint(cause));
    if (error) this.#reporter.unreadableNow(error);
  }
}
