/**
 * Compares what was observed with what was last reported, and reports the difference when its quiet period is over.
 *
 * | observed             | compared with the last report   | then                                                        |
 * |----------------------|---------------------------------|-------------------------------------------------------------|
 * | files                | the same keys and contents      | nothing is pending, `readable`; `revision` if it is another |
 * | files                | others, or it was missing       | `change`, after the quiet period below                      |
 * | nothing              | missing                         | nothing is pending, `readable`                              |
 * | nothing              | files                           | `change` to missing, after `missingGraceMs`                 |
 * | something unreadable | unreadable for the same reason  | nothing is pending                                          |
 * | something unreadable | anything else                   | `unreadable`, after `missingGraceMs`; the files are kept    |
 * | part of a tree is    | anything else                   | the same, while the rest is reported                        |
 *
 * A swap is whole the moment it is seen, a file that is written in place is whole when nobody writes it any longer, and
 * a target that is gone may be in the gap of a swap. So a difference must stay as it is for a quiet period:
 *
 * | a file that differs                                 | quiet period                                              |
 * |-----------------------------------------------------|-----------------------------------------------------------|
 * | behind a retargeted link                            | 0: its bytes were there before the link                   |
 * | a new inode, changed after its last byte            | 0: it was complete when it was renamed into place; where  |
 * |                                                     | writes are reported `CONFIRM_MS`, for a writer that       |
 * |                                                     | changes the mode of its file                              |
 * | a new inode, and no write was reported              | `CONFIRM_MS`: the same, within one tick of the clock      |
 * | written in place or just created, and empty         | `missingGraceMs`: truncated, and yet to be written        |
 * | written in place or just created                    | `settleMs`                                                |
 * | gone, unless from a new revision                    | `missingGraceMs`                                          |
 *
 * A file that never comes to rest is reported after `maxSettleMs`. In a tree and in a plain directory each file has a
 * quiet period of its own, and then waits `settleMs` for the others: what changes together is one change, and a file that
 * is written all the time delays no other. In a volume and in a group, which are whole together, the longest period
 * counts. Files of a group behind different links wait `groupSettleMs` for each other, until all these links have been
 * retargeted. At the start there is nothing to keep, so nothing waits but a file that is being written at this moment.
 */
import type { TargetError } from '../../core/errors.js';
import type { Clock, Scheduled } from '../../core/clock.js';
import type { Readable, Unreadable } from '../../core/events.js';
import type { Found, SeenFile, Observation } from '../../fs/observation.js';
import {
  FileSnapshot,
  MissingSnapshot,
  SetSnapshot,
  type SetKind,
  type Snapshot,
} from '../../fs/snapshot.js';
import { keysThatDiffer, withEntries } from '../../fs/persistent-map.js';
import { differenceOf, keysOf, type Change, type ChangeCause, type KeyDifference } from '../change.js';
import type { RevisionChange } from '../watcher-events.js';
import type { InPlaceWrites } from './in-place-writes.js';
import { PendingChanges, type Difference } from './pending-changes.js';
import {
  longer,
  NO_QUIET_PERIOD,
  quietPeriodFor,
  quietPeriodForLoss,
  type LastFile,
  type QuietPeriod,
  type QuietPeriodOptions,
} from './quiet-period.js';

/** Receives what is reported. */
export interface ReportListener {
  change(change: Change): void;
  revision(revision: RevisionChange): void;
  unreadable(unreadable: Unreadable): void;
  readable(readable: Readable): void;
  /** Something is pending and is due now. */
  checkAgain(cause: ChangeCause): void;
}

/** An observation that says something about the target. */
type StableObservation = Exclude<Observation, { kind: 'unstable' | 'disallowed' }>;

/** Options of a reporter. */
interface ReporterOptions extends QuietPeriodOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly persistent: boolean;
}

const NO_PATHS: ReadonlySet<string> = new Set();

const NO_DIFFERENCE: KeyDifference = { added: [], changed: [], removed: [] };

const NOTHING: Found['files'] = new Map();

/** What was last reported, and what is pending. */
export class Reporter {
  readonly #options: ReporterOptions;
  readonly #listener: ReportListener;
  readonly #writes: InPlaceWrites;
  #reported: Snapshot;
  /** Whether `#reported` is more than the assumption that nothing was there. */
  #hasReported = false;
  /** The files as they were when they last equalled what was reported. */
  #files: Found['files'] = NOTHING;
  /** The files that are gone, as they were last seen. */
  readonly #gone = new Map<string, LastFile>();
  /** The links of the last target that was found. */
  #lastLinks = '';
  #unreadable: { readonly error: TargetError; readonly since: number } | undefined;
  /** The part of a tree that cannot be read at present, and is yet to be reported. */
  #part: { readonly error: TargetError; readonly since: number } | undefined;
  #partTimer: Scheduled | undefined;
  readonly #pending = new PendingChanges();
  #pendingPaths = NO_PATHS;
  #timer: Scheduled | undefined;

  constructor(options: ReporterOptions, listener: ReportListener, writes: InPlaceWrites) {
    this.#options = options;
    this.#listener = listener;
    this.#writes = writes;
    this.#reported = new MissingSnapshot(options.path);
  }

  /**
   * What was last reported; undefined before the first report. That nothing is there may be known without a report.
   */
  get reported(): Snapshot | undefined {
    return this.#hasReported ? this.#reported : undefined;
  }

  /** Why the target cannot be read at present, if that was reported. */
  get unreadable(): TargetError | undefined {
    return this.#unreadable?.error;
  }

  /** Whether a difference is pending. */
  get hasPending(): boolean {
    return this.#pending.any || this.#part !== undefined;
  }

  /** The paths of the files whose differences are pending. */
  get pendingPaths(): ReadonlySet<string> {
    return this.#pendingPaths;
  }

  /** Handles the observation of a check. */
  consider(seen: StableObservation, cause: ChangeCause): void {
    const difference = this.#compare(seen);
    if (this.#isKnown(seen, difference)) {
      this.#confirm(seen, cause);
      return;
    }
    const now = this.#options.clock.monotonic();
    const parts = this.#partsOf(seen, difference);
    const differences = new Map<string, Difference>();
    for (const [name, part] of parts) {
      const quietPeriod =
        cause === 'start' ? this.#quietPeriodAtStart(seen, part) : this.#quietPeriod(seen, part);
      // An appearance takes digests, which a difference that is due at once does not need.
      differences.set(name, {
        quietPeriod,
        appearance: quietPeriod === NO_QUIET_PERIOD ? '' : appearanceOf(seen, part),
      });
    }
    const {
      due,
      next,
      cause: first = cause,
    } = this.#pending.update(differences, cause, now, cause === 'start' ? 0 : this.#options.settleMs);
    if (next) this.#wait(next.inMs, next.cause);
    else this.#forgetDifferences();
    const areDue = new Set(due);
    const unripe = [...parts].filter(([name]) => !areDue.has(name)).map(([, part]) => part);
    this.#pendingPaths = pathsIn(seen, unripe);
    if (unripe.length === 0) this.#report(seen, difference, first);
    else if (due.length > 0 && seen.kind === 'found') {
      const part = together(due.flatMap((name) => parts.get(name) ?? []));
      this.#report(this.#without(seen, together(unripe)), part, first);
    }
  }

  /**
   * Takes what was read right after a swap. It was complete before the link was retargeted, so if contents differ from
   * those that were reported, that is all there is to compare.
   */
  considerSwap(seen: Found, cause: ChangeCause): void {
    const { kind } = seen.snapshot;
    if (this.#reported.kind !== kind || this.#unreadable || this.hasPending) return;
    if (seen.chain.links === this.#lastLinks) return;
    const before = this.#files;
    const keys = new Set([...before.keys(), ...seen.files.keys()]);
    const difference = differenceOf(before, seen.files, keys, haveSameContent);
    if (keysOf(difference).length === 0) return;
    const previous = this.#reported;
    this.#remember(seen);
    this.#listener.change({ previous, current: this.#reported, cause, ...difference });
  }

  /** The target could not be read for so long that it is to be reported now. */
  unreadableNow(error: TargetError): void {
    if (this.#isUnreadableFor(error)) return;
    this.close();
    this.#becomeUnreadable(error);
  }

  /** Forgets what is pending. */
  close(): void {
    this.#forgetDifferences();
    this.#forgetPart();
  }

  #forgetDifferences(): void {
    this.#pending.clear();
    this.#pendingPaths = NO_PATHS;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #compare(seen: StableObservation): KeyDifference {
    const files = seen.kind === 'found' ? seen.files : NOTHING;
    return differenceOf(this.#files, files, keysThatDiffer(this.#files, files), haveSameContent);
  }

  /**
   * The differences that are reported together, by name: each file separately in a loose set, otherwise everything.
   */
  #partsOf(seen: StableObservation, difference: KeyDifference): ReadonlyMap<string, KeyDifference> {
    if (!this.#isLoose(seen)) return new Map([['', difference]]);
    const parts = new Map<string, KeyDifference>();
    for (const key of difference.added) parts.set(key, { ...NO_DIFFERENCE, added: [key] });
    for (const key of difference.changed) parts.set(key, { ...NO_DIFFERENCE, changed: [key] });
    for (const key of difference.removed) parts.set(key, { ...NO_DIFFERENCE, removed: [key] });
    return parts;
  }

  /** Whether each file is reported separately: in a directory that is the same as before, or new. */
  #isLoose(seen: StableObservation): boolean {
    if (seen.kind !== 'found') return false;
    const { kind, realPath } = seen.snapshot;
    if (kind !== 'tree' && kind !== 'directory') return false;
    const before = this.#reported;
    return before.kind === 'missing' || (before.kind === kind && before.realPath === realPath);
  }

  /** The observation without these differences: there, what was reported. */
  #without(seen: Found, difference: KeyDifference): Found {
    const keys = keysOf(difference);
    const { kind, path, realPath, revision } = seen.snapshot;
    const files = withEntries(seen.files, keys, this.#files);
    const states = withEntries(seen.snapshot.files, keys, this.#reported.files);
    const snapshot = new SetSnapshot({ kind: kind as SetKind, path, realPath, revision, files: states });
    return { ...seen, files, snapshot };
  }

  #isKnown(seen: StableObservation, difference: KeyDifference): boolean {
    if (seen.kind === 'unreadable') return this.#isUnreadableFor(seen.error);
    const isMissing = this.#reported.kind === 'missing';
    return (seen.kind === 'missing') === isMissing && keysOf(difference).length === 0;
  }

  #isUnreadableFor({ code, path }: TargetError): boolean {
    return this.#unreadable?.error.code === code && this.#unreadable.error.path === path;
  }

  #quietPeriodAtStart(seen: StableObservation, { added }: KeyDifference): QuietPeriod {
    const isWhole = seen.kind !== 'found' || added.every((key) => seen.files.get(key)?.steady);
    const { settleMs, maxSettleMs } = this.#options;
    return isWhole ? NO_QUIET_PERIOD : { quietMs: settleMs, totalMs: maxSettleMs };
  }

  #quietPeriod(seen: StableObservation, difference: KeyDifference): QuietPeriod {
    if (seen.kind !== 'found') return quietPeriodForLoss(this.#options);
    const { added, changed, removed } = difference;
    const isSwapped = isDirectory(seen) && seen.chain.links !== this.#lastLinks;
    let quietPeriod = removed.length > 0 && !isSwapped ? quietPeriodForLoss(this.#options) : NO_QUIET_PERIOD;
    if (isSwapped && [...seen.files.values()].every(({ steady }) => steady)) return quietPeriod;
    for (const key of [...added, ...changed]) {
      const file = seen.files.get(key);
      if (!file) continue;
      const written = this.#writes.isWritten(file.snapshot.realPath);
      const own = quietPeriodFor(file, this.#lastFile(key, seen), written, this.#options);
      if (own !== NO_QUIET_PERIOD) quietPeriod = longer(quietPeriod, own);
    }
    return seen.snapshot.kind === 'group' && this.#isPartial(seen)
      ? longer(quietPeriod, { quietMs: this.#options.groupSettleMs, totalMs: this.#options.groupSettleMs })
      : quietPeriod;
  }

  /** The file as it was last seen, whether it is there or gone. */
  #lastSeen(key: string): LastFile | undefined {
    return this.#files.get(key) ?? this.#gone.get(key);
  }

  /** A file in a directory that was not there was behind the same links as the others. */
  #lastFile(key: string, { snapshot }: Found): LastFile | undefined {
    const last = this.#lastSeen(key);
    if (last || snapshot.kind === 'file' || snapshot.kind === 'group') return last;
    // The links of a tree's files are counted from its root.
    return { links: snapshot.kind === 'tree' ? '' : this.#lastLinks, inode: undefined };
  }

  /** Whether some of the links that lead to a group's files were retargeted, and some were not. */
  #isPartial({ files }: Found): boolean {
    const kept = new Set<string>();
    let retargeted = false;
    for (const [key, { links }] of files) {
      if (links === '') continue;
      if (this.#lastSeen(key)?.links === links) kept.add(links);
      else retargeted = true;
    }
    return retargeted && kept.size > 0;
  }

  #confirm(seen: StableObservation, cause: ChangeCause): void {
    this.#forgetDifferences();
    if (seen.kind === 'unreadable') return;
    this.#hasReported = true;
    this.#reportReadability(seen, cause);
    if (seen.kind === 'missing') return;
    const previous = this.#reported.revision;
    const current = seen.snapshot.revision;
    this.#remember(seen);
    if (current !== undefined && current !== previous) this.#listener.revision({ previous, current });
  }

  #report(seen: StableObservation, difference: KeyDifference, cause: ChangeCause): void {
    if (seen.kind === 'unreadable') {
      this.#becomeUnreadable(seen.error);
      return;
    }
    const previous = this.#reported;
    this.#hasReported = true;
    this.#reportReadability(seen, cause);
    this.#remember(seen);
    this.#listener.change({ previous, current: this.#reported, cause, ...difference });
  }

  #becomeUnreadable(error: TargetError): void {
    this.#forgetPart();
    const since = this.#unreadable?.since ?? this.#options.clock.monotonic();
    this.#unreadable = { error, since };
    this.#listener.unreadable({ error });
  }

  /** Part of a tree may be unreadable while the rest is reported; like the whole, after `missingGraceMs`. */
  #reportReadability(seen: StableObservation, cause: ChangeCause): void {
    const error = seen.kind === 'found' ? seen.unreadable : undefined;
    if (!error || this.#isUnreadableFor(error)) {
      this.#forgetPart();
      if (!error) this.#becomeReadable();
      return;
    }
    const { clock, missingGraceMs, persistent } = this.#options;
    const now = clock.monotonic();
    if (this.#part?.error.code !== error.code || this.#part.error.path !== error.path) {
      this.#forgetPart();
      this.#part = { error, since: now };
    }
    const remainingMs = cause === 'start' ? 0 : this.#part.since + missingGraceMs - now;
    if (remainingMs <= 0) this.#becomeUnreadable(error);
    else {
      this.#partTimer?.cancel();
      this.#partTimer = clock.schedule(() => this.#listener.checkAgain(cause), remainingMs, {
        ref: persistent,
      });
    }
  }

  #forgetPart(): void {
    this.#part = undefined;
    this.#partTimer?.cancel();
    this.#partTimer = undefined;
  }

  #becomeReadable(): void {
    if (!this.#unreadable) return;
    const unreadableMs = this.#options.clock.monotonic() - this.#unreadable.since;
    this.#unreadable = undefined;
    this.#listener.readable({ unreadableMs });
  }

  #remember(seen: Exclude<StableObservation, { kind: 'unreadable' }>): void {
    const files = seen.kind === 'found' ? seen.files : NOTHING;
    // A file of a group that is gone may come back through a link; a file of a directory may be replaced.
    if (seen.kind === 'found' && seen.snapshot.kind !== 'group') this.#gone.clear();
    else {
      for (const key of keysThatDiffer(this.#files, files)) {
        const last = this.#files.get(key);
        if (files.has(key)) this.#gone.delete(key);
        else if (last) this.#gone.set(key, { links: last.links, inode: last.inode });
      }
    }
    this.#files = files;
    if (seen.kind === 'missing') this.#reported = new MissingSnapshot(this.#options.path);
    else {
      this.#reported = seen.snapshot;
      this.#lastLinks = seen.chain.links;
    }
  }

  #wait(delayMs: number, cause: ChangeCause): void {
    const { clock, persistent } = this.#options;
    this.#timer?.cancel();
    this.#timer = clock.schedule(() => this.#listener.checkAgain(cause), delayMs, { ref: persistent });
  }
}

/** Whether its files are behind the links of the target, unless a file has links of its own. */
function isDirectory({ snapshot: { kind } }: Found): boolean {
  return kind === 'volume' || kind === 'tree' || kind === 'directory';
}

/** The paths of the files that differ in these parts. */
function pathsIn(seen: StableObservation, parts: readonly KeyDifference[]): ReadonlySet<string> {
  const files = seen.kind === 'found' ? seen.files : NOTHING;
  const keys = parts.flatMap(({ added, changed }) => [...added, ...changed]);
  return new Set(keys.flatMap((key) => files.get(key)?.snapshot.realPath ?? []));
}

function together(parts: readonly KeyDifference[]): KeyDifference {
  return {
    added: parts.flatMap(({ added }) => added),
    changed: parts.flatMap(({ changed }) => changed),
    removed: parts.flatMap(({ removed }) => removed),
  };
}

function haveSameContent({ snapshot: one }: SeenFile, { snapshot: other }: SeenFile): boolean {
  const bytes = FileSnapshot.bytesOf(one);
  const others = FileSnapshot.bytesOf(other);
  // Digests are computed only where they are needed.
  return bytes && others ? bytes.equals(others) : one.digest === other.digest;
}

function appearanceOf(seen: StableObservation, { added, changed, removed }: KeyDifference): string {
  switch (seen.kind) {
    case 'found': {
      const files = [...added, ...changed].map((key) => {
        const file = seen.files.get(key);
        return [key, file?.signature, file?.snapshot.digest];
      });
      return JSON.stringify([files, removed]);
    }
    case 'missing':
      return seen.kind;
    case 'unreadable':
      return `${seen.error.code} ${seen.error.path}`;
  }
}
