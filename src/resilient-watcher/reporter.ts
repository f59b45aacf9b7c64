/**
 * Compares what is seen with what was last reported, and reports the difference when it is ripe.
 *
 * | what is seen         | compared with the last report     | then                                          |
 * |----------------------|-----------------------------------|-----------------------------------------------|
 * | files                | the same keys and contents        | end doubt and trouble; a new revision is told |
 * | files                | others, or it was missing         | `change`, after the patience of patience.ts   |
 * | nothing              | missing                           | end doubt and trouble                         |
 * | nothing              | files                             | `change` to missing, after the grace          |
 * | something unreadable | the same trouble                  | end doubt                                     |
 * | something unreadable | anything else                     | `error`, after the grace; the files are kept  |
 *
 * Of a tree or a plain directory each file waits for itself, and then `settleMs` for the others: what changes together
 * is one change, and a file that is written all the time holds up no other.
 * At the start nothing is doubted but a file that is being written this moment: there is nothing to keep.
 */
import type { TargetError } from '../errors.js';
import type { Clock, Scheduled } from '../ports.js';
import type { Found, SeenFile, Sighting } from '../sighting.js';
import { digestOf, MissingSnapshot, SetSnapshot, type SetKind, type Snapshot } from '../snapshot.js';
import { keysThatDiffer, withEntries } from '../persistent-map.js';
import { differenceOf, keysOf, type Change, type ChangeCause, type KeyDifference } from './change.js';
import { Doubts, type Waiting } from './doubts.js';
import {
  longer,
  NO_PATIENCE,
  patienceFor,
  patienceForLoss,
  type LastFile,
  type Patience,
  type PatienceOptions,
} from './patience.js';
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
  trouble(error: TargetError): void;
  /** A difference was seen that is not ripe yet. */
  lookAgain(cause: ChangeCause): void;
}

/** A sighting that says something about the target. */
export type ClearSighting = Exclude<Sighting, { kind: 'moving' | 'unfamiliar' }>;

/** How a reporter behaves. */
export interface ReporterOptions extends PatienceOptions {
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
  #trouble: TargetError | undefined;
  readonly #doubts = new Doubts();
  #doubted = NO_PATHS;
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
  get trouble(): TargetError | undefined {
    return this.#trouble;
  }

  /** Whether something was seen that differs from the report and is not ripe yet. */
  get inDoubt(): boolean {
    return this.#doubts.any;
  }

  /** Where the files stand that differ and are not ripe yet. */
  get doubted(): ReadonlySet<string> {
    return this.#doubted;
  }

  /** Takes in what a look has found. */
  consider(seen: ClearSighting, cause: ChangeCause): void {
    const difference = this.#compare(seen);
    if (this.#isKnown(seen, difference)) {
      this.#confirm(seen);
      return;
    }
    const now = this.#options.clock.monotonic();
    const parts = this.#partsOf(seen, difference);
    const waiting = new Map<string, Waiting>();
    for (const [name, part] of parts) {
      const patience = cause === 'start' ? this.#patienceAtStart(seen, part) : this.#patience(seen, part);
      // What is ripe the moment it is seen needs no looks, which take digests.
      waiting.set(name, { patience, looks: patience === NO_PATIENCE ? '' : looksOf(seen, part) });
    }
    const {
      ripe,
      next,
      cause: first = cause,
    } = this.#doubts.weigh(waiting, cause, now, cause === 'start' ? 0 : this.#options.settleMs);
    if (next) this.#wait(next.inMs, next.cause);
    else this.close();
    const areRipe = new Set(ripe);
    const unripe = [...parts].filter(([name]) => !areRipe.has(name)).map(([, part]) => part);
    this.#doubted = pathsIn(seen, unripe);
    if (unripe.length === 0) this.#report(seen, difference, first);
    else if (ripe.length > 0 && seen.kind === 'found') {
      const part = together(ripe.flatMap((name) => parts.get(name) ?? []));
      this.#report(this.#without(seen, together(unripe)), part, first);
    }
  }

  /** Forgets what it doubts. */
  close(): void {
    this.#doubts.clear();
    this.#doubted = NO_PATHS;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #compare(seen: ClearSighting): KeyDifference {
    const files = seen.kind === 'found' ? seen.files : NOTHING;
    return differenceOf(this.#files, files, keysThatDiffer(this.#seen, files), isSameContent);
  }

  /** What is reported together: files that stand for themselves by key, all else under one name. */
  #partsOf(seen: ClearSighting, difference: KeyDifference): ReadonlyMap<string, KeyDifference> {
    if (!this.#isLoose(seen)) return new Map([['', difference]]);
    const parts = new Map<string, KeyDifference>();
    for (const key of difference.added) parts.set(key, { ...NO_DIFFERENCE, added: [key] });
    for (const key of difference.changed) parts.set(key, { ...NO_DIFFERENCE, changed: [key] });
    for (const key of difference.removed) parts.set(key, { ...NO_DIFFERENCE, removed: [key] });
    return parts;
  }

  /** Whether each file stands for itself: in a directory that is the same as before, or newly there. */
  #isLoose(seen: ClearSighting): boolean {
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

  #isKnown(seen: ClearSighting, difference: KeyDifference): boolean {
    if (seen.kind === 'trouble') {
      return this.#trouble?.code === seen.error.code && this.#trouble.path === seen.error.path;
    }
    const isMissing = this.#reported.kind === 'missing';
    return (seen.kind === 'missing') === isMissing && keysOf(difference).length === 0;
  }

  #patienceAtStart(seen: ClearSighting, { added }: KeyDifference): Patience {
    const isWhole = seen.kind !== 'found' || added.every((key) => seen.files.get(key)?.steady);
    const { settleMs, maxSettleMs } = this.#options;
    return isWhole ? NO_PATIENCE : { quietMs: settleMs, totalMs: maxSettleMs };
  }

  #patience(seen: ClearSighting, difference: KeyDifference): Patience {
    if (seen.kind !== 'found') return patienceForLoss(this.#options);
    const { added, changed, removed } = difference;
    const isSwapped = isDirectory(seen) && seen.chain.links !== this.#lastLinks;
    let patience = removed.length > 0 && !isSwapped ? patienceForLoss(this.#options) : NO_PATIENCE;
    if (isSwapped && [...seen.files.values()].every(({ steady }) => steady)) return patience;
    for (const key of [...added, ...changed]) {
      const file = seen.files.get(key);
      if (!file) continue;
      const written = this.#writes.areOf(file.snapshot.realPath);
      const own = patienceFor(file, this.#lastFile(key, seen), written, this.#options);
      if (own !== NO_PATIENCE) patience = longer(patience, own);
    }
    return seen.snapshot.kind === 'group' && this.#isPartial(seen)
      ? longer(patience, { quietMs: this.#options.groupSettleMs, totalMs: this.#options.groupSettleMs })
      : patience;
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

  #confirm(seen: ClearSighting): void {
    this.close();
    if (seen.kind === 'trouble') return;
    this.#trouble = undefined;
    if (seen.kind === 'missing') return;
    const previous = this.#reported.revision;
    const current = seen.snapshot.revision;
    this.#remember(seen);
    if (current !== undefined && current !== previous) this.#listener.revision({ previous, current });
  }

  #report(seen: ClearSighting, difference: KeyDifference, cause: ChangeCause): void {
    if (seen.kind === 'trouble') {
      this.#trouble = seen.error;
      this.#listener.trouble(seen.error);
      return;
    }
    const previous = this.#reported;
    this.#trouble = undefined;
    // They differ, so that there is no need to compare them again.
    for (const key of difference.changed) this.#files.delete(key);
    this.#remember(seen);
    this.#listener.change({ previous, current: this.#reported, cause, ...difference });
  }

  #remember(seen: Exclude<ClearSighting, { kind: 'trouble' }>): void {
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
    this.#timer = clock.schedule(() => this.#listener.lookAgain(cause), delayMs, { ref: persistent });
  }
}

/** One that is behind the links of the target; a file that is behind others has its own. */
function isDirectory({ snapshot: { kind } }: Found): boolean {
  return kind === 'volume' || kind === 'tree' || kind === 'directory';
}

/** Where the files stand that differ in these parts. */
function pathsIn(seen: ClearSighting, parts: readonly KeyDifference[]): ReadonlySet<string> {
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

function looksOf(seen: ClearSighting, { added, changed, removed }: KeyDifference): string {
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
    case 'trouble':
      return `${seen.error.code} ${seen.error.path}`;
  }
}
