/**
 * Compares what was observed with what was last reported, and reports the difference when its quiet period is over.
 *
 * | observed             | compared with the last report   | then                                                        |
 * |----------------------|---------------------------------|-------------------------------------------------------------|
 * | files                | the same keys and contents      | nothing is pending, `readable`; `revision` if it is another |
 * | files                | others, or it was missing       | `change`, after the quiet period of quiet-period.ts         |
 * | files                | the same, of another kind: a    | `change`, after the quiet period that all of them have      |
 * |                      | directory in place of a file    |                                                             |
 * | files after a swap   | nothing is pending              | `change` if contents differ, otherwise `revision`           |
 * | nothing              | missing                         | nothing is pending, `readable`                              |
 * | nothing              | files                           | `change` to missing, after `missingGraceMs`                 |
 * | something unreadable | unreadable for the same reason  | nothing is pending                                          |
 * | something unreadable | anything else                   | `unreadable`, after `missingGraceMs`; the files are kept    |
 * | part of a tree is    | anything else                   | the same, while the rest is reported (readability.ts)       |
 *
 * What a call of `add` or `remove` has added to a group or a tree, or removed from it, is reported at once.
 *
 * In a tree and in a plain directory each file has a quiet period of its own, and then waits `settleMs` for the others:
 * what changes together is one change, and a file that is written all the time delays no other.
 */
import { LONG_PAUSE, type Effects } from '../../fs/effects.js';
import type { TargetError } from '../../fs/target-error.js';
import type { Clock, Scheduled } from '../../core/clock.js';
import type { Found, Replacement, StableObservation, Swap } from '../../fs/observation.js';
import type { Snapshot } from '../../fs/snapshot.js';
import { isEmpty, type ChangeCause, type KeyDifference } from '../change.js';
import type { WatcherEvent } from '../watcher-events.js';
import { appearanceOf } from './appearance.js';
import {
  asOnePart,
  divided,
  NO_DIFFERENCE,
  partForEachFile,
  pathsIn,
  PORTION,
  withAll,
} from './difference-parts.js';
import type { InPlaceWrites } from './in-place-writes.js';
import { LastReport, NO_FILES } from './last-report.js';
import { PendingChanges } from './pending-changes.js';
import {
  NO_QUIET_PERIOD,
  quietPeriodAtStart,
  quietPeriodForLoss,
  quietPeriodsFor,
  type QuietPeriod,
  type QuietPeriodOptions,
} from './quiet-period.js';
import { Readability } from './readability.js';

/** Whoever the reports are made for. */
export interface ReportOwner {
  /** Emits `change`, `revision`, `unreadable` or `readable`. */
  report(event: WatcherEvent): void;
  /** Something is pending and is due now. */
  checkAgain(cause: ChangeCause): void;
}

/** Options of a reporter. */
interface ReporterOptions extends QuietPeriodOptions {
  readonly clock: Clock;
  readonly persistent: boolean;
}

const NO_PATHS: ReadonlySet<string> = new Set();

/** What was last reported, and what is pending. */
export class Reporter {
  readonly #options: ReporterOptions;
  readonly #owner: ReportOwner;
  readonly #writes: InPlaceWrites;
  readonly #last: LastReport;
  /** Whether `#last` is more than the assumption that nothing was there. */
  #hasReported = false;
  /** While the target, or a part of it, is not known to be readable. */
  #readability: Readability | undefined;
  /** While a difference is pending. */
  #pending: PendingChanges | undefined;
  #pendingPaths = NO_PATHS;
  #timer: Scheduled | undefined;

  /** @param path the watched path. */
  constructor(path: string, options: ReporterOptions, owner: ReportOwner, writes: InPlaceWrites) {
    this.#options = options;
    this.#owner = owner;
    this.#writes = writes;
    this.#last = new LastReport(path);
  }

  /**
   * What was last reported; undefined before the first report. That nothing is there may be known without a report.
   */
  get reported(): Snapshot | undefined {
    return this.#hasReported ? this.#last.snapshot : undefined;
  }

  /** Why the target cannot be read at present, if that was reported. */
  get unreadable(): TargetError | undefined {
    return this.#readability?.error;
  }

  /** Whether a difference is pending. */
  get hasPending(): boolean {
    return this.#pending !== undefined || this.#readability?.hasPending === true;
  }

  /** The paths of the files whose differences are pending. */
  get pendingPaths(): ReadonlySet<string> {
    return this.#pendingPaths;
  }

  /** Handles the observation of a check; in slices, since as many files may differ as there are. */
  *consider(seen: StableObservation, cause: ChangeCause): Effects<void> {
    const files = filesOf(seen);
    if (seen.kind === 'missing') this.#noteLoss(seen.chain.links);
    yield* this.#considerRegrouped(seen, cause);
    const difference = yield* this.#last.difference(files);
    if (this.#isKnown(seen, difference)) {
      this.#confirm(seen, cause);
      return;
    }
    // There may be many files, and none of them waits.
    if (cause === 'start' && this.#quietPeriods(seen, cause)(difference) === NO_QUIET_PERIOD) {
      this.#forgetDifferences();
      this.#report(seen, difference, cause);
      return;
    }
    const changing = this.#isOtherKind(seen) ? withAll(files, difference) : difference;
    const { due, next, cause: first = cause } = yield* this.#wait(seen, changing, cause);
    if (!next) {
      this.#forgetDifferences();
      this.#report(seen, difference, first);
      return;
    }
    this.#checkAgain(next.inMs, next.cause);
    const [part, waiting] =
      due.size > 0 ? divided(difference, (key) => due.has(key)) : [NO_DIFFERENCE, changing];
    this.#pendingPaths = pathsIn(files, waiting);
    if (due.size > 0 && seen.kind === 'found') {
      this.#report(yield* this.#last.without(seen, waiting), part, first);
    }
  }

  /**
   * Reports what was added to a group or a tree, or removed from it, by a call: nothing of that is in the gap of a swap,
   * so it is due like everything at the start. Only an added file of a group is of one instant with the others, and
   * waits for them.
   */
  *#considerRegrouped(seen: StableObservation, cause: ChangeCause): Effects<void> {
    if (seen.kind === 'unreadable' || !seen.isRegrouped || this.#isOtherKind(seen)) return;
    const files = filesOf(seen);
    const difference = yield* this.#last.difference(files);
    const isDue = (key: string): boolean =>
      seen.isRegrouped?.(key) === true && files.get(key)?.steady !== false;
    let [part, rest] = divided(difference, isDue);
    if (!isEmpty(rest) && !this.#reportsEachFile(seen))
      [part, rest] = divided(difference, (key) => isDue(key) && !files.has(key));
    if (isEmpty(part)) return;
    if (isEmpty(rest)) this.#report(seen, part, cause);
    else if (seen.kind === 'found') this.#report(yield* this.#last.without(seen, rest), part, cause);
  }

  /**
   * Takes what was read right after a swap. It was complete before the link was retargeted, so its contents are all there
   * is to compare.
   */
  considerSwap(swap: Swap, cause: ChangeCause): void {
    const { snapshot, links } = swap;
    const last = this.#last;
    const previous = last.snapshot;
    if (previous.kind !== snapshot.kind || last.links === links) return;
    if (this.#pending || this.#readability) return;
    const difference = last.swapped(swap);
    if (difference) {
      const { added, changed, removed } = difference;
      const payload = { previous, current: snapshot, cause, added, changed, removed };
      this.#owner.report({ name: 'change', payload });
    } else this.#reportRevision(previous.revision, snapshot.revision);
  }

  /**
   * Takes files, alone or of a directory or a tree, that replaced others, and were complete when they did. Everything
   * else is left to the check, and so are these files unless each of them is known to be complete.
   */
  considerReplaced(replaced: readonly Replacement[], cause: ChangeCause): void {
    const last = this.#last;
    const previous = last.snapshot;
    if (this.unreadable || !replaced.every((replacement) => this.#isComplete(replacement))) return;
    const changed = last.changedBy(replaced);
    if (changed.length === 0) return;
    last.replaced(replaced);
    const payload = { ...NO_DIFFERENCE, previous, current: last.snapshot, cause, changed };
    this.#owner.report({ name: 'change', payload });
  }

  #isComplete({ key, file }: Replacement): boolean {
    const { inode } = this.#last.file(key) ?? {};
    const isNew =
      inode !== undefined && inode !== file.inode && this.#last.pathOf(key) === file.snapshot.realPath;
    return isNew && this.#writes.isWritten(file.snapshot.realPath) === false;
  }

  /** The target could not be read for so long that it is to be reported now. */
  unreadableNow(error: TargetError): void {
    if (this.#readability?.isKnown(error)) return;
    this.#forgetDifferences();
    this.#notReadable.unreadable(error);
  }

  /** Forgets what is pending. */
  close(): void {
    this.#forgetDifferences();
    this.#readability?.forget();
  }

  #forgetDifferences(): void {
    this.#pending = undefined;
    this.#pendingPaths = NO_PATHS;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #noteLoss(links: string): void {
    const { snapshot } = this.#last;
    this.#last.lost(links);
    if (snapshot.kind === 'file') this.#writes.gone(snapshot.realPath);
  }

  /** Updates what is pending. */
  *#wait(
    seen: StableObservation,
    difference: KeyDifference,
    cause: ChangeCause,
  ): Effects<ReturnType<PendingChanges['due']>> {
    const { clock, settleMs } = this.#options;
    const now = clock.monotonic();
    const parts = this.#reportsEachFile(seen) ? partForEachFile(difference) : asOnePart(difference);
    const quietPeriodOf = this.#quietPeriods(seen, cause);
    const pending = (this.#pending ??= new PendingChanges());
    pending.begin();
    let count = 0;
    for (const [name, part] of parts) {
      const quietPeriod = quietPeriodOf(part);
      // What is due at once is compared with nothing.
      const appearance = quietPeriod === NO_QUIET_PERIOD ? '' : appearanceOf(seen, part);
      pending.see(name, appearance, quietPeriod, cause, now);
      count += 1;
      if (count % PORTION === 0) yield LONG_PAUSE;
    }
    return pending.due(cause === 'start' ? 0 : settleMs, now);
  }

  #quietPeriods(seen: StableObservation, cause: ChangeCause): (part: KeyDifference) => QuietPeriod {
    const options = this.#options;
    if (cause === 'start') return (part) => quietPeriodAtStart(filesOf(seen), part, options);
    if (seen.kind !== 'found') return () => quietPeriodForLoss(options);
    return quietPeriodsFor(seen, this.#last, this.#writes, options);
  }

  /** Whether each file is reported separately: in a directory that is the same as before, or new. */
  #reportsEachFile(seen: StableObservation): boolean {
    if (seen.kind !== 'found') return false;
    const { kind, realPath } = seen.snapshot;
    if (kind !== 'tree' && kind !== 'directory') return false;
    const before = this.#last.snapshot;
    return before.kind === 'missing' || (before.kind === kind && before.realPath === realPath);
  }

  #isKnown(seen: StableObservation, difference: KeyDifference): boolean {
    if (seen.kind === 'unreadable') return this.#readability?.isKnown(seen.error) === true;
    const isMissing = this.#last.snapshot.kind === 'missing';
    if ((seen.kind === 'missing') !== isMissing || !isEmpty(difference)) return false;
    return !this.#isOtherKind(seen);
  }

  #isOtherKind(seen: StableObservation): boolean {
    return seen.kind === 'found' && this.#last.isOtherKind(seen.snapshot.kind);
  }

  #confirm(seen: StableObservation, cause: ChangeCause): void {
    this.#forgetDifferences();
    if (seen.kind === 'unreadable') return;
    this.#hasReported = true;
    this.#reportReadability(seen, cause);
    if (seen.kind === 'missing') return;
    const previous = this.#last.snapshot.revision;
    this.#remember(seen);
    this.#reportRevision(previous, seen.snapshot.revision);
  }

  /** The same contents, of another revision. */
  #reportRevision(previous: string | undefined, current: string | undefined): void {
    if (current === undefined || current === previous) return;
    this.#owner.report({ name: 'revision', payload: { previous, current } });
  }

  #report(seen: StableObservation, difference: KeyDifference, cause: ChangeCause): void {
    if (seen.kind === 'unreadable') {
      this.#notReadable.unreadable(seen.error);
      return;
    }
    const previous = this.#last.snapshot;
    this.#reportReadability(seen, cause);
    this.#remember(seen);
    this.#hasReported = true;
    const { added, changed, removed } = difference;
    const payload = { previous, current: this.#last.snapshot, cause, added, changed, removed };
    this.#owner.report({ name: 'change', payload });
  }

  #remember(seen: Exclude<StableObservation, { kind: 'unreadable' }>): void {
    if (seen.kind === 'missing') this.#last.missing();
    else this.#last.found(seen.snapshot, seen.files, seen.chain.links);
  }

  #reportReadability(seen: StableObservation, cause: ChangeCause): void {
    const error = seen.kind === 'found' ? seen.unreadable : undefined;
    if (error) {
      this.#notReadable.partlyUnreadable(error, cause);
      return;
    }
    const before = this.#readability;
    this.#readability = undefined;
    before?.readable();
  }

  get #notReadable(): Readability {
    return (this.#readability ??= new Readability(this.#options, this.#owner));
  }

  #checkAgain(delayMs: number, cause: ChangeCause): void {
    const { clock, persistent } = this.#options;
    this.#timer?.cancel();
    this.#timer = clock.schedule(() => this.#owner.checkAgain(cause), delayMs, { ref: persistent });
  }
}

function filesOf(seen: StableObservation): Found['files'] {
  return seen.kind === 'found' ? seen.files : NO_FILES;
}
