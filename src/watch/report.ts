/**
 * Compares what a look has found with what was last reported, and reports the difference when it is due.
 *
 * | found             | compared with the last report  | then                                                       |
 * |-------------------|--------------------------------|------------------------------------------------------------|
 * | files             | the same keys and contents     | nothing is pending; `revision` if it is another one        |
 * | files             | other files, or another kind   | `change`, when each of them is complete (waits.ts) or       |
 * |                   |                                | has been quiet for `settleMs`, or for `missingGraceMs` if  |
 * |                   |                                | it is empty or gone                                        |
 * | nothing           | missing                        | nothing is pending                                         |
 * | nothing           | files                          | `change`, after `missingGraceMs`                           |
 * | unreadable        | unreadable for the same reason | nothing is pending                                         |
 * | unreadable        | anything else                  | `unreadable`, after `missingGraceMs`; the files are kept   |
 * | partly unreadable | as above                       | the same, and the rest is reported                         |
 *
 * | the files of        | are reported                                                            |
 * |---------------------|-------------------------------------------------------------------------|
 * | a volume            | together                                                                |
 * | a group             | together; retargeted links wait `groupSettleMs` for the others          |
 * | a directory, a tree | first, all that were there at the start and are not being written in    |
 * |                     | place; then each when it is due: one that is due waits `settleMs` for   |
 * |                     | the others                                                              |
 *
 * In a directory or tree, the keys of one volume are due together, also one that leaves it. In the first report, and in
 * that of a file that was added with `add`, a file is also complete if it was last written before `settleMs`. What
 * `remove` has changed is reported at once, but a file added to a group whose other files are changing is reported
 * together with them.
 */
import { insidePath } from '../core/ports/platform-path.js';
import type { Clock } from '../core/ports/clock.js';
import { slices, type Steps } from '../core/scheduling/steps.js';
import { differing, FileMap } from '../fs/file-map.js';
import type { Observation } from '../fs/observation.js';
import { linksIn } from '../fs/resolve.js';
import { FileSnapshot, MissingSnapshot, SetSnapshot, type Files, type Snapshot } from '../fs/snapshot.js';
import type { TargetError } from '../fs/target-error.js';
import { compare, filterKeys, isEmpty, keysOf, type ChangeCause, type KeyDifference } from './change.js';
import type { VolumeTimes } from './look.js';
import {
  dueAtFirst,
  dueEach,
  dueTogether,
  isEach,
  POSTPONED_MS,
  remembered,
  seenAgain,
  vanishedOf,
  type Due,
  type Look,
  type Pending,
} from './pending.js';
import { isPartlyRetargeted, KIND, volumeOf, waitsFor, type SeenFiles, type WaitOptions } from './waits.js';
import type { WatcherEvent } from './watcher-events.js';

/** An observation that can be compared with the last report. */
export type StableObservation = Exclude<Observation, { kind: 'unstable' }>;

/** Options of a reporter. */
interface ReporterOptions extends WaitOptions {
  readonly clock: Clock;
}

/** The key of a pending difference that is not one of files. */
const UNREADABLE = '/unreadable';

/** How many looks must find that something is gone, if no event would tell that it is back. */
const LOOKS_WITHOUT_EVENTS = 7;

/** With more pending files than this, visiting everything is faster. */
const MAX_PATHS = 1_000;

const NOTHING: ReadonlyMap<string, Pending> = new Map();
const NO_KEYS: ReadonlySet<string> = new Set();

/** Keeps what was last reported and what is pending. */
export class Reporter {
  /** What was last reported; undefined before the first report. */
  reported: Snapshot | undefined;
  /** When a pending difference is due, so that another look is needed, monotonic ms; `Infinity` if none is pending. */
  nextAt = Infinity;
  readonly #options: ReporterOptions;
  /** The assumption before the first report. */
  readonly #nothing: MissingSnapshot;
  #unreadable: { readonly error: TargetError; readonly since: number } | undefined;
  /** The differences that the last look has seen and that are not reported yet, by key. */
  #pending = NOTHING;
  /** Those that were seen a short time ago, but not by the last look. */
  #vanished = NOTHING;
  /** Since when some links of a group have been retargeted and others have not, monotonic ms. */
  #partialSince: number | undefined;
  /** The keys that `add` and `remove` have changed and that are not reported yet. */
  #regrouped: ReadonlySet<string> = NO_KEYS;
  /** When the last look ended, monotonic ms. */
  #lookedAt = 0;
  /** What the current comparison reports. */
  #events: WatcherEvent[] = [];
  /** Of the volumes of files that the last look has not found. */
  #volumeTimes: VolumeTimes = new Map();

  /** @param path the watched path. */
  constructor(path: string, options: ReporterOptions) {
    this.#nothing = new MissingSnapshot(path);
    this.#options = options;
  }

  /** Why the target currently cannot be read, if that was reported. */
  get unreadable(): TargetError | undefined {
    return this.#unreadable?.error;
  }

  /** Whether retargeted links of a group wait for the others; for `groupSettleMs` at most. */
  get isPartlyRetargeted(): boolean {
    return this.#partialSince !== undefined && this.nextAt < Infinity;
  }

  /** Whether everything that `add` and `remove` have changed has been reported. */
  get isRegroupReported(): boolean {
    return this.#regrouped.size === 0;
  }

  /** What is compared with. */
  get #last(): Snapshot {
    return this.reported ?? this.#nothing;
  }

  /** Compares what a look has found. @param volumeTimes of volumes whose reported files were not found. */
  *consider(seen: StableObservation, look: Look, volumeTimes: VolumeTimes): Steps<readonly WatcherEvent[]> {
    this.#events = [];
    this.#lookedAt = look.now;
    this.#volumeTimes = volumeTimes;
    const before = this.#pending;
    this.#pending = NOTHING;
    const readableAt = this.#considerReadability(seen, before, look);
    const filesAt = seen.kind === 'unreadable' ? Infinity : yield* this.#considerFiles(seen, before, look);
    const isPending = this.#pending.size > 0;
    this.nextAt = isPending ? Math.min(readableAt, filesAt, this.#checkedAt(look)) : Infinity;
    return this.#events;
  }

  /**
   * What a look that begins at this time visits besides: the pending files that have come due since the last look, or
   * all of them if something is to be reported (everything, if they are many), the links that led to them, and the
   * volumes in which they wait for a link. The events of these may still be on their way. The timer may be late, and
   * then a look for another event reports them.
   * @param seen what was considered last.
   */
  pathsDueAt(now: number, seen: Observation | undefined): readonly (string | undefined)[] {
    if (this.nextAt === Infinity) return [];
    const isNext = now >= this.nextAt;
    if (this.#pending.size > MAX_PATHS) return isNext ? [undefined] : [];
    const found = seen?.kind === 'found' ? seen : undefined;
    const files = found?.snapshot.files;
    const known = this.#last.files;
    const volumes = new Set<string>();
    const paths = [...this.#pending].flatMap(([key, { dueAt }]) => {
      if (!isNext && (dueAt <= this.#lookedAt || dueAt > now + POSTPONED_MS)) return [];
      const file = files?.get(key) ?? known.get(key);
      if (!file) return found?.unreadable ? insidePath(found.unreadable.path) : [];
      const volume = volumeOf(file);
      if (volume !== undefined && found?.unlinked?.has(volume)) volumes.add(volume);
      const links = Array.from(linksIn(FileSnapshot.stampOf(file).links), ({ path }) => path);
      return [insidePath(file.realPath), ...links];
    });
    return [...paths, ...volumes];
  }

  /** Without events, only more looks tell that what is gone was there in the meantime. */
  #checkedAt({ cause, now }: Look): number {
    if (cause !== 'poll' && cause !== 'resync') return Infinity;
    const isAnyGone = [...this.#pending.values()].some(({ appearance }) => appearance === undefined);
    return isAnyGone ? now + this.#options.missingGraceMs / LOOKS_WITHOUT_EVENTS : Infinity;
  }

  /** Returns when `unreadable` is due, monotonic ms; `Infinity` if it is not pending. */
  #considerReadability(seen: StableObservation, before: ReadonlyMap<string, Pending>, look: Look): number {
    const { now } = look;
    const error =
      seen.kind === 'unreadable' ? seen.error : seen.kind === 'found' ? seen.unreadable : undefined;
    if (!error) {
      if (seen.kind === 'found' && this.#unreadable) this.#readable(now);
      return Infinity;
    }
    const reason = reasonOf(error);
    if (this.#unreadable && reasonOf(this.#unreadable.error) === reason) return Infinity;
    const { missingGraceMs, maxSettleMs } = this.#options;
    const wait = { quietMs: missingGraceMs, maxMs: missingGraceMs + maxSettleMs };
    const pending = seenAgain(before.get(UNREADABLE), reason, wait, look);
    if (pending.dueAt > now) {
      this.#pending = new Map([[UNREADABLE, pending]]);
      return pending.dueAt;
    }
    this.#unreadable = { error, since: this.#unreadable?.since ?? now };
    this.#events.push({ name: 'unreadable', payload: { error } });
    return Infinity;
  }

  /** Returns when the next difference of the files is due. */
  *#considerFiles(seen: SeenFiles, before: ReadonlyMap<string, Pending>, look: Look): Steps<number> {
    const { cause, now } = look;
    const last = this.#last;
    const snapshot = seen.kind === 'missing' ? new MissingSnapshot(last.path) : seen.snapshot;
    const [known, files] = [last.files, snapshot.files];
    const found: FileSnapshot[] = [];
    const difference = yield* compare(known, files, FileSnapshot.haveSameContent, found, slices());
    if (seen.isRegrouped || this.#regrouped.size > 0) {
      // What is no difference any more, such as an added file that was removed again, will not be reported.
      const isAwaited = (key: string): boolean => this.#regrouped.has(key) || !!seen.isRegrouped?.(key);
      this.#regrouped = new Set(keysOf(difference).filter(isAwaited));
    }
    const reported = {
      snapshot: last,
      files: known,
      isAssumed: this.reported === undefined,
      regrouped: this.#regrouped,
    };
    const seenAt = this.#options.clock.now() - (now - look.beganAt);
    const waits = yield* waitsFor(seen, snapshot, files, difference, found, reported, seenAt, this.#options);
    const othersAt = snapshot.kind === 'group' ? this.#othersAt(files, now) : now;
    const vanished = this.#vanished;
    const memoryMs = this.#options.missingGraceMs;
    this.#vanished = yield* vanishedOf([vanished, before], (key) => waits.has(key), memoryMs, now);
    if (othersAt <= now && isEach(waits.values(), ({ quietMs }) => quietMs === 0)) {
      this.#regrouped = NO_KEYS;
      const first = [...before.keys()].find((key) => waits.has(key));
      this.#report(snapshot, difference, before.get(first ?? '')?.cause ?? cause, now);
      return Infinity;
    }
    const pending = new Map<string, Pending>();
    const slice = slices();
    for (const [key, wait] of waits) {
      yield* slice();
      const appearance = key === KIND ? this.#kindOf(seen) : (files.get(key) ?? this.#goneAt(key));
      const earlier = before.get(key) ?? remembered(vanished.get(key), memoryMs, now);
      pending.set(key, seenAgain(earlier, appearance, wait, look));
    }
    return yield* this.#reportDue(snapshot, files, difference, pending, othersAt, look);
  }

  /**
   * What is there. In the gap of a swap, the times of the volumes show whether something was there in the meantime; before the
   * first report, that of the directory does.
   */
  #kindOf(seen: SeenFiles): string {
    if (seen.kind === 'found') return seen.snapshot.kind;
    if (!seen.isGap) return seen.kind;
    return `gap ${this.reported ? [...this.#volumeTimes.values()].join() : seen.changedNs}`;
  }

  /** A file that is gone: when its volume was last swapped, if it comes from one. */
  #goneAt(key: string): string | undefined {
    const time = this.#volumeTimes.get(volumeOf(this.#last.files.get(key)) ?? '');
    return time === undefined ? undefined : `gone ${time}`;
  }

  /** Reports the pending differences that are due. Returns when the others are due. */
  *#reportDue(
    snapshot: Snapshot,
    files: Files,
    difference: KeyDifference,
    pending: ReadonlyMap<string, Pending>,
    othersAt: number,
    look: Look,
  ): Steps<number> {
    const { now } = look;
    const { due, next } = this.#reportsEachFile(snapshot)
      ? yield* this.#dueInDirectory(pending, files, look)
      : dueTogether(pending, othersAt, (key) => this.#regrouped.has(key) && !files.has(key), now);
    // A directory that appears later is reported with the first of its files.
    const isEarly = this.reported && due.length === 1 && due[0] === KIND && pending.size > 1;
    const isDue = new Set(isEarly ? [] : due);
    const rest = new Map(this.#pending);
    const slice = slices();
    for (const [key, own] of pending) {
      yield* slice();
      if (!isDue.has(key)) rest.set(key, own);
    }
    this.#pending = rest;
    this.#regrouped = new Set([...this.#regrouped].filter((key) => !isDue.has(key)));
    const [first] = isDue;
    if (first === undefined) return next;
    const cause = pending.get(first)?.cause ?? 'check';
    if (isDue.size === pending.size) this.#report(snapshot, difference, cause, now);
    else yield* this.#reportPart(snapshot, files, difference, isDue, cause, now);
    return next;
  }

  /** A key belongs to the volume that it leaves, too. */
  #volumesOf(key: string, files: Files): string[] {
    const versions = [this.#last.files.get(key), files.get(key)];
    return versions.map(volumeOf).filter((volume) => volume !== undefined);
  }

  /** Which files of a directory or tree are due. */
  #dueInDirectory(pending: ReadonlyMap<string, Pending>, files: Files, look: Look): Steps<Due> {
    const volumes = (key: string): string[] => this.#volumesOf(key, files);
    if (!this.reported) return dueAtFirst(pending, volumes, look.now);
    return dueEach(pending, this.#options.settleMs, volumes, (key) => this.#regrouped.has(key), look);
  }

  /** When the retargeted links of a group are due, even if others have not been retargeted. */
  #othersAt(files: Files, now: number): number {
    const isPartial = isPartlyRetargeted(this.#last.files, files);
    this.#partialSince = isPartial ? (this.#partialSince ?? now) : undefined;
    return this.#partialSince === undefined ? now : this.#partialSince + this.#options.groupSettleMs;
  }

  /** Whether each file is reported when it is due: only in a directory or tree that is new, or was one before. */
  #reportsEachFile({ kind }: Snapshot): boolean {
    const before = this.#last.kind;
    return (kind === 'tree' || kind === 'directory') && (before === 'missing' || before === kind);
  }

  /** Reports these differences. For all others, the last report stays, and for all keys of the volumes that they are in. */
  *#reportPart(
    snapshot: Snapshot,
    files: Files,
    difference: KeyDifference,
    due: ReadonlySet<string>,
    cause: ChangeCause,
    now: number,
  ): Steps<void> {
    const before = this.#last.files;
    const waiting = new Set(keysOf(difference).filter((key) => !due.has(key)));
    const volumes = new Set([...waiting].flatMap((key) => this.#volumesOf(key, files)));
    const kept: (readonly [string, FileSnapshot | undefined])[] = [];
    const slice = slices();
    for (const [key, known, file] of differing(before, files)) {
      yield* slice();
      const isKept = waiting.has(key) || (!due.has(key) && volumes.has(volumeOf(file) ?? ''));
      if (isKept) kept.push([key, known]);
    }
    const isMap = before instanceof FileMap || files instanceof FileMap;
    const known = isMap ? yield* (yield* FileMap.of(files)).with(kept) : withFiles(files, kept);
    const like = (snapshot.kind === 'missing' ? this.#last : snapshot) as SetSnapshot;
    const { kind, path, realPath, revision } = like;
    const part = new SetSnapshot({ kind, path, realPath, revision, files: known });
    const reported = filterKeys(difference, (key) => due.has(key));
    this.#report(part, reported, cause, now);
  }

  /** Reports the current state. */
  #report(snapshot: Snapshot, difference: KeyDifference, cause: ChangeCause, now: number): void {
    const previous = this.#last;
    this.reported = snapshot;
    // If something was found, `readable` was reported before, or a part is still unreadable.
    if (this.#unreadable && snapshot.kind === 'missing') this.#readable(now);
    if (!isEmpty(difference) || previous.kind !== snapshot.kind) {
      this.#events.push({
        name: 'change',
        payload: { previous, current: snapshot, cause, ...difference },
      });
    } else if (snapshot.revision !== undefined && snapshot.revision !== previous.revision) {
      const payload = { previous: previous.revision, current: snapshot.revision };
      this.#events.push({ name: 'revision', payload });
    }
  }

  #readable(now: number): void {
    const since = this.#unreadable?.since ?? now;
    this.#unreadable = undefined;
    this.#events.push({ name: 'readable', payload: { unreadableMs: now - since } });
  }
}

/** Like `FileMap.with`, for the files of a group, which keep their order. */
function withFiles(files: Files, changes: readonly (readonly [string, FileSnapshot | undefined])[]): Files {
  const changed = new Map(files);
  for (const [key, file] of changes) {
    if (file) changed.set(key, file);
    else changed.delete(key);
  }
  return changed;
}

function reasonOf({ code, path }: TargetError): string {
  return `${code} ${path}`;
}
