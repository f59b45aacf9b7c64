/**
 * What was read of the files of a directory or a tree. After the next walk only what differs is read again:
 *
 * | the file                                              | is read                                                  |
 * |-------------------------------------------------------|----------------------------------------------------------|
 * | has another signature than at the walk before         | now                                                      |
 * | has the same, and changed while it was read           | now                                                      |
 * | has the same, and a write might not show in it        | now if a hint names it; once more `COARSEST_TIMESTAMP_MS` |
 * | (timestamp-proof.ts)                                  | after the signature was first seen, `PROVEN_AT_ONCE` of  |
 * |                                                       | them at each check                                       |
 * | has the same, and was read once more, or every write  | not                                                      |
 * | shows in it                                           |                                                          |
 * | is larger than a limit                                | not; inode and timestamps stand for its content          |
 */
import { errnoOf, hasMoved, isExhausted } from '../../core/errno.js';
import type { FileSystemCalls } from '../../core/file-system.js';
import { readSeenFile } from '../file-reading.js';
import { keysThatDiffer, PersistentMap } from '../persistent-map.js';
import {
  COARSEST_TIMESTAMP_MS,
  type Moment,
  type ReadLimits,
  type Replacement,
  type SeenFile,
} from '../observation.js';
import { FileSnapshot, type FileState } from '../snapshot.js';
import { LONG_PAUSE, PAUSE, type Effects } from '../effects.js';
import { changedMap } from '../tree-draft.js';
import { TimestampProof } from '../timestamp-proof.js';
import type { TreeFile } from '../tree-part.js';
import { readReplacedFile } from './replaced-file.js';
import { ReadTotals, type Limited } from './read-limits.js';

/** How the files of a tree are read. */
export interface TreeReading extends ReadLimits {
  /** Whether files are read; if not, they are compared by inode and timestamps. */
  readonly content: boolean;
  /** Whether a file that may not be read makes all of them unreadable; if not, it is compared like one not read. */
  readonly isWhole?: boolean;
}

/**
 * The number of files that are read once more at each check. This takes some milliseconds, for which hints have to
 * wait.
 */
const PROVEN_AT_ONCE = 200;

/** The number of keys that are gathered within a millisecond or two. */
const GATHERED_AT_ONCE = 10_000;

/** What was read of the files of a walk. What fails changes nothing, so that it can be repeated. */
export class TreeFiles {
  readonly #path: string;
  readonly #reading: TreeReading;
  #totals: ReadTotals;
  #walked = PersistentMap.empty<TreeFile>();
  #seen = PersistentMap.empty<SeenFile>();
  #states = PersistentMap.empty<FileState>();
  /** Those that changed while they were read. */
  readonly #unsteady = new Set<string>();
  readonly #proof = new TimestampProof();
  /** When the signatures of those that are to be read once more were first seen, the oldest first, monotonic ms. */
  readonly #unproven = new Map<string, number>();
  #limited: Limited = { kept: 'identities', limited: undefined };
  #version = 0;
  #hasTaken = false;

  /** @param path of the directory or the tree, as it is watched. */
  constructor(path: string, reading: TreeReading) {
    this.#path = path;
    this.#reading = reading;
    this.#totals = new ReadTotals(reading);
  }

  get seen(): ReadonlyMap<string, SeenFile> {
    return this.#seen;
  }

  get states(): ReadonlyMap<string, FileState> {
    return this.#states;
  }

  /** See `Found.limited`. */
  get limited(): string | undefined {
    return this.#limited.limited;
  }

  /** Equal versions: the same files with equal signatures. */
  get version(): number {
    return this.#version;
  }

  /** Whether a file is read again only when its signature changes. */
  get isProven(): boolean {
    return this.#unsteady.size === 0 && this.#unproven.size === 0;
  }

  /**
   * See `Target.readReplacement`.
   * @param path of the file, every link resolved.
   */
  readReplacement(key: string, path: string, calls: FileSystemCalls): Replacement | undefined {
    const known = this.#walked.get(key);
    if (known?.path !== path || this.#limited.kept !== 'contents') return undefined;
    const { maxContentBytes } = this.#reading;
    const place = { path: `${this.#path}/${key}`, realPath: path, revision: undefined, links: known.links };
    const file = readReplacedFile(place, maxContentBytes, known.inode, calls);
    return file && { key, file };
  }

  /**
   * Takes in the files of a walk.
   * @param named the files that hints name, or all.
   * @returns the files that did not stand still, and those that differ from the walk before.
   */
  *take(
    files: PersistentMap<TreeFile>,
    named: Iterable<string> | 'all',
    { monotonic: now, timestampMs }: Moment,
  ): Effects<readonly TreeFile[]> {
    this.#proof.begin(timestampMs);
    const isFirst = !this.#hasTaken;
    const different = yield* setOf(isFirst ? files.keys() : keysThatDiffer(this.#walked, files));
    const totals = yield* this.#totalsWith(files, different);
    const limited = this.#reading.content ? totals.limited : this.#limited;
    const seen = new Map<string, SeenFile | undefined>();
    const states = new Map<string, FileState | undefined>();
    for (const key of yield* this.#toMake(files, different, limited, named, now)) {
      const file = files.get(key);
      const made = file && (yield* this.#make(key, file, limited));
      seen.set(key, made);
      states.set(key, made?.snapshot);
      // A file that is not read makes no calls.
      yield PAUSE;
    }
    this.#seen = yield* changedMap(this.#seen, seen);
    this.#states = yield* changedMap(this.#states, states);
    this.#hasTaken = true;
    this.#walked = files;
    this.#totals = totals;
    this.#limited = limited;
    if (different.size > 0) this.#version += 1;
    const unsettled: TreeFile[] = [];
    for (const [key, made] of seen) {
      const file = files.get(key);
      this.#note(key, file, made, different.has(key), now);
      if (file && (made?.steady === false || (different.has(key) && !isFirst))) unsettled.push(file);
      yield PAUSE;
    }
    return unsettled;
  }

  *#totalsWith(files: PersistentMap<TreeFile>, different: Iterable<string>): Effects<ReadTotals> {
    const totals = new ReadTotals(this.#reading, this.#totals);
    for (const key of different) {
      totals.remove(this.#walked.get(key)?.size);
      const file = files.get(key);
      totals.add(file?.size);
      if (file) this.#proof.saw(file.signature);
      yield PAUSE;
    }
    return totals;
  }

  *#toMake(
    files: PersistentMap<TreeFile>,
    different: ReadonlySet<string>,
    { kept }: Limited,
    named: Iterable<string> | 'all',
    now: number,
  ): Effects<Iterable<string>> {
    // At the start they are the same keys.
    if (kept !== this.#limited.kept && !this.#hasTaken) return different;
    // Removed files are among the different ones.
    if (kept !== this.#limited.kept) return yield* setOf(different, files.keys());
    if (kept === 'identities') return different;
    return yield* setOf(different, this.#unsteady, this.#toProve(named, now));
  }

  *#toProve(named: Iterable<string> | 'all', now: number): Iterable<string> {
    if (this.#unproven.size === 0) return;
    for (const key of named === 'all' ? this.#unproven.keys() : named) if (this.#unproven.has(key)) yield key;
    let proven = 0;
    for (const [key, since] of this.#unproven) {
      if (now - since < COARSEST_TIMESTAMP_MS || proven === PROVEN_AT_ONCE) return;
      proven += 1;
      yield key;
    }
  }

  #note(
    key: string,
    file: TreeFile | undefined,
    made: SeenFile | undefined,
    isDifferent: boolean,
    now: number,
  ): void {
    const isSteady = made?.steady !== false;
    if (isSteady) this.#unsteady.delete(key);
    else this.#unsteady.add(key);
    const since = isDifferent ? undefined : this.#unproven.get(key);
    const isLater = since !== undefined && now - since >= COARSEST_TIMESTAMP_MS;
    const isProven = isSteady && (isLater || (file !== undefined && this.#proof.isProven(file.signature)));
    const isRead = file !== undefined && this.#isRead(file, this.#limited);
    if (isDifferent || isProven || !isRead) this.#unproven.delete(key);
    if (isRead && !isProven && !this.#unproven.has(key)) this.#unproven.set(key, now);
  }

  #isRead({ size }: TreeFile, { kept }: Limited): boolean {
    return kept !== 'identities' && size <= this.#reading.maxContentBytes;
  }

  *#make(key: string, file: TreeFile, limited: Limited): Effects<SeenFile> {
    return this.#isRead(file, limited)
      ? yield* this.#read(key, file, limited.kept === 'digests')
      : this.#unread(key, file);
  }

  /**
   * Reads a file. One that has disappeared again counts as not read: its removal causes a hint. One that cannot be
   * read keeps its content if its signature is unchanged; otherwise it is compared by inode and timestamps. Running
   * out of descriptors says nothing about the file.
   */
  *#read(key: string, file: TreeFile, digestOnly: boolean): Effects<SeenFile> {
    const { maxContentBytes, isWhole = false } = this.#reading;
    const { path: realPath, links } = file;
    try {
      const place = { path: `${this.#path}/${key}`, realPath, revision: undefined, links };
      const seen = yield* readSeenFile({ ...place, maxContentBytes, digestOnly });
      if (seen) return { ...seen, steady: seen.steady && seen.signature === file.signature };
    } catch (error) {
      if (errnoOf(error) === undefined || isExhausted(error)) throw error;
      const known = this.#seen.get(key);
      if (!hasMoved(error)) {
        if (isWhole) throw error;
        return known?.signature === file.signature ? known : this.#unread(key, file);
      }
    }
    return { ...this.#unread(key, file), steady: false };
  }

  #unread(key: string, file: TreeFile): SeenFile {
    const { path: realPath, links, signature, inode, statDigest, finished, size, mode } = file;
    const path = `${this.#path}/${key}`;
    const snapshot = new FileSnapshot({
      path,
      realPath,
      revision: undefined,
      content: undefined,
      digest: statDigest,
      size,
      mode,
    });
    return { snapshot, signature, inode, finished, steady: true, links };
  }
}

/** The keys, gathered in portions. */
function* setOf(...sources: readonly Iterable<string>[]): Effects<Set<string>> {
  const keys = new Set<string>();
  for (const source of sources) {
    for (const key of source) {
      keys.add(key);
      if (keys.size % GATHERED_AT_ONCE === 0) yield LONG_PAUSE;
    }
  }
  return keys;
}
