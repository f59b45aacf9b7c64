/**
 * Compares what is seen with what was last reported, and reports the difference when it is ripe.
 *
 * | what is seen         | compared with the last report     | then                                          |
 * |----------------------|-----------------------------------|-----------------------------------------------|
 * | files                | the same keys and contents        | end pending and trouble; a new revision is told |
 * | files                | others, or it was missing         | `change`, after the quietPeriod of quietPeriod.ts   |
 * | nothing              | missing                           | end pending and trouble                         |
 * | nothing              | files                             | `change` to missing, after the grace          |
 * | something unreadable | the same trouble                  | end pending                                     |
 * | something unreadable | anything else                     | `error`, after the grace; the files are kept  |
 *
 * Of a tree or a plain directory each file waits for itself, and then `settleMs` for the others: what changes together
 * is one change, and a file that is written all the time holds up no other.
 * At the start nothing is pendingPaths but a file that is being written this moment: there is nothing to keep.
 */
import type { TargetError } from '../core/errors.js';
import type { Clock, Scheduled } from '../core/clock.js';
import type { Found, SeenFile, Observation } from '../fs/observation.js';
import { digestOf, MissingSnapshot, SetSnapshot, type SetKind, type Snapshot } from '../fs/snapshot.js';
import { keysThatDiffer, withEntries } from '../fs/persistent-map.js';
import { differenceOf, keysOf, type Change, type ChangeCause, type KeyDifference } from './change.js';
import { PendingChanges, type Waiting } from './pending-changes.js';
import {
  longer,
  NO_QUIET_PERIOD,
  quietPeriodFor,
  quietPeriodForLoss,
  type LastFile,
  type QuietPeriod,
  type QuietPeriodOptions,
} from './quiet-period.js';
import type { Writes } from './writes.js';

/** A new revision with the same bytes. */
export interface RevisionChange {
  readonly previous: string | undefined;
  readonly current: string;
}

/** Who is told. */
export interface ReportListener {
  change(change: Change): void;
  revision(revision: RevisionChange): void;
  unreadable(error: TargetError): void;
  /** A difference was seen that is not ripe yet. */
  checkAgain(cause: ChangeCause): void;
}

/** A observation that says something about the target. */
export type StableObservation = Exclude<Observation, { kind: 'unstable' | 'disallowed' }>;

/** How a reporter behaves. */
export interface ReporterOptions extends QuietPeriodOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly persistent: boolean;
}

/** What was reported of a file: a copy of the bytes, since a listener may do with its own what it likes. */
type ReportedFile = Buffer | string;

const NO_PATHS: ReadonlySet<string> = new Set();

const NO_DIFFERENCE: KeyDifference = { added: [], changed: [], removed: [] };

const NOTHING: Found['files'] = new Map();

/** The memory of what was reported. */
export class Reporter {
  readonly #options: ReporterOptions;
  readonly #listener: ReportListener;
  readonly #writes: Writes;
  #reported: Snapshot;
  readonly #files = new Map<string, ReportedFile>();
  /** As they were seen when they were last known to be what was reported. */
  #seen: Found['files'] = NOTHING;
  /** How those that are gone were last seen. */
  readonly #gone = new Map<string, LastFile>();
  /** The links of the last target that was there. */
  #lastLinks = '';
  #unreadable: TargetError | undefined;
  readonly #pending = new PendingChanges();
  #pendingPaths = NO_PATHS;
  #timer: Scheduled | undefined;

  constructor(options: ReporterOptions, listener: ReportListener, writes: Writes) {
    this.#options = options;
    this.#listener = listener;
    this.#writes = writes;
    this.#reported = new MissingSnapshot(options.path);
  }

  /** What was last reported. */
  get reported(): Snapshot {
    return this.#reported;
  }

  /** Why the target cannot be read at present, once that was reported. */
  get unreadable(): TargetError | undefined {
    return this.#unreadable;
  }

  /** Whether something was seen that differs from the report and is not ripe yet. */
  get hasPending(): boolean {
    return this.#pending.any;
  }

  /** Where the files stand that differ and are not ripe yet. */
  get pendingPaths(): ReadonlySet<string> {
    return this.#pendingPaths;
  }

  /** Takes in what a check has found. */
  consider(seen: StableObservation, cause: ChangeCause): void {
    const difference = this.#compare(seen);
    if (this.#isKnown(seen, difference)) {
      this.#confirm(seen);
      return;
    }
    const now = this.#options.clock.monotonic();
    const parts = this.#partsOf(seen, difference);
    const waiting = new Map<string, Waiting>();
    for (const [name, part] of parts) {
      const quietPeriod =
        cause === 'start' ? this.#quietPeriodAtStart(seen, part) : this.#quietPeriod(seen, part);
      // What is ripe the moment it is seen needs no looks, which take digests.
      waiting.set(name, {
        quietPeriod,
        appearance: quietPeriod === NO_QUIET_PERIOD ? '' : appearanceOf(seen, part),
      });
    }
    const {
      ripe,
      next,
      cause: first = cause,
    } = this.#pending.weigh(waiting, cause, now, cause === 'start' ? 0 : this.#options.settleMs);
    if (next) this.#wait(next.inMs, next.cause);
    else this.close();
    const areRipe = new Set(ripe);
    const unripe = [...parts].filter(([name]) => !areRipe.has(name)).map(([, part]) => part);
    this.#pendingPaths = pathsIn(seen, unripe);
    if (unripe.length === 0) this.#report(seen, difference, first);
    else if (ripe.length > 0 && seen.kind === 'found') {
      const part = together(ripe.flatMap((name) => parts.get(name) ?? []));
      this.#report(this.#without(seen, together(unripe)), part, first);
    }
  }

  /** Forgets what it pending. */
  close(): void {
    this.#pending.clear();
    this.#pendingPaths = NO_PATHS;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #compare(seen: StableObservation): KeyDifference {
    const files = seen.kind === 'found' ? seen.files : NOTHING;
    return differenceOf(this.#files, files, keysThatDiffer(this.#seen, files), isSameContent);
  }

  /** What is reported together: files that stand for themselves by key, all else under one name. */
  #partsOf(seen: StableObservation, difference: KeyDifference): ReadonlyMap<string, KeyDifference> {
    if (!this.#isLoose(seen)) return new Map([['', difference]]);
    const parts = new Map<string, KeyDifference>();
    for (const key of difference.added) parts.set(key, { ...NO_DIFFERENCE, added: [key] });
    for (const key of difference.changed) parts.set(key, { ...NO_DIFFERENCE, changed: [key] });
    for (const key of difference.removed) parts.set(key, { ...NO_DIFFERENCE, removed: [key] });
    return parts;
  }

  /** Whether each file stands for itself: in a directory that is the same as before, or newly there. */
  #isLoose(seen: StableObservation): boolean {
    if (seen.kind !== 'found') return false;
    const { kind, realPath } = seen.snapshot;
    if (kind !== 'tree' && kind !== 'directory') return false;
    const before = this.#reported;
    return before.kind === 'missing' || (before.kind === kind && before.realPath === realPath);
  }

  /** What is seen, but without these differences: there, what was reported. */
  #without(seen: Found, difference: KeyDifference): Found {
    const keys = keysOf(difference);
    const { kind, path, realPath, revision } = seen.snapshot;
    const files = withEntries(seen.files, keys, this.#seen);
    const states = withEntries(seen.snapshot.files, keys, this.#reported.files);
    const snapshot = new SetSnapshot({ kind: kind as SetKind, path, realPath, revision, files: states });
    return { ...seen, files, snapshot };
  }

  #isKnown(seen: StableObservation, difference: KeyDifference): boolean {
    if (seen.kind === 'unreadable') {
      return this.#unreadable?.code === seen.error.code && this.#unreadable.path === seen.error.path;
    }
    const isMissing = this.#reported.kind === 'missing';
    return (seen.kind === 'missing') === isMissing && keysOf(difference).length === 0;
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
      const written = this.#writes.areOf(file.snapshot.realPath);
      const own = quietPeriodFor(file, this.#lastFile(key, seen), written, this.#options);
      if (own !== NO_QUIET_PERIOD) quietPeriod = longer(quietPeriod, own);
    }
    return seen.snapshot.kind === 'group' && this.#isPartial(seen)
      ? longer(quietPeriod, { quietMs: this.#options.groupSettleMs, totalMs: this.#options.groupSettleMs })
      : quietPeriod;
  }

  /** How it was last seen, whether it is there or gone. */
  #lastSeen(key: string): LastFile | undefined {
    return this.#seen.get(key) ?? this.#gone.get(key);
  }

  /** A key of a directory that was not there has been behind the same links as the others. */
  #lastFile(key: string, { snapshot }: Found): LastFile | undefined {
    const last = this.#lastSeen(key);
    if (last || snapshot.kind === 'file' || snapshot.kind === 'group') return last;
    // The files of a tree are told apart from its root on.
    return { links: snapshot.kind === 'tree' ? '' : this.#lastLinks, inode: undefined };
  }

  /** Of the links that lead to a group's files some were retargeted and some were not. */
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

  #confirm(seen: StableObservation): void {
    this.close();
    if (seen.kind === 'unreadable') return;
    this.#unreadable = undefined;
    if (seen.kind === 'missing') return;
    const previous = this.#reported.revision;
    const current = seen.snapshot.revision;
    this.#remember(seen);
    if (current !== undefined && current !== previous) this.#listener.revision({ previous, current });
  }

  #report(seen: StableObservation, difference: KeyDifference, cause: ChangeCause): void {
    if (seen.kind === 'unreadable') {
      this.#unreadable = seen.error;
      this.#listener.unreadable(seen.error);
      return;
    }
    const previous = this.#reported;
    this.#unreadable = undefined;
    // They differ, so that there is no need to compare them again.
    for (const key of difference.changed) this.#files.delete(key);
    this.#remember(seen);
    this.#listener.change({ previous, current: this.#reported, cause, ...difference });
  }

  #remember(seen: Exclude<StableObservation, { kind: 'unreadable' }>): void {
    const files = seen.kind === 'found' ? seen.files : NOTHING;
    // A member of a group that is gone may come back through a link; a file of a directory may be replaced.
    const isReplaced = seen.kind === 'found' && seen.snapshot.kind !== 'group';
    if (isReplaced) this.#gone.clear();
    for (const key of keysThatDiffer(this.#seen, files)) {
      const file = files.get(key);
      const last = this.#seen.get(key);
      if (file) {
        this.#rememberFile(key, file);
        this.#gone.delete(key);
      } else {
        this.#files.delete(key);
        if (last && !isReplaced) this.#gone.set(key, { links: last.links, inode: last.inode });
      }
    }
    this.#seen = files;
    if (seen.kind === 'missing') this.#reported = new MissingSnapshot(this.#options.path);
    else {
      this.#reported = seen.snapshot;
      this.#lastLinks = seen.chain.links;
    }
  }

  #rememberFile(key: string, file: SeenFile): void {
    const known = this.#files.get(key);
    if (known === undefined || !isSameContent(known, file)) this.#files.set(key, reportedFile(file));
  }

  #wait(delayMs: number, cause: ChangeCause): void {
    const { clock, persistent } = this.#options;
    this.#timer?.cancel();
    this.#timer = clock.schedule(() => this.#listener.checkAgain(cause), delayMs, { ref: persistent });
  }
}

/** One that is behind the links of the target; a file that is behind others has its own. */
function isDirectory({ snapshot: { kind } }: Found): boolean {
  return kind === 'volume' || kind === 'tree' || kind === 'directory';
}

/** Where the files stand that differ in these parts. */
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

function reportedFile({ snapshot }: SeenFile): ReportedFile {
  return snapshot.content ? Buffer.from(snapshot.content) : snapshot.digest;
}

function isSameContent(reported: ReportedFile, { snapshot }: SeenFile): boolean {
  if (typeof reported === 'string') return reported === snapshot.digest;
  return snapshot.content ? reported.equals(snapshot.content) : digestOf(reported) === snapshot.digest;
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
