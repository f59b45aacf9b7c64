/** What was last reported, and what is compared with it. */
import { LONG_PAUSE, type Effects } from '../../fs/effects.js';
import { keysThatDiffer, withEntries } from '../../fs/persistent-map.js';
import { leadThroughVolume } from '../../fs/link-chain.js';
import { changedMap } from '../../fs/tree-draft.js';
import type { Found, Replacement, Swap } from '../../fs/observation.js';
import { MissingSnapshot, SetSnapshot, type FileSnapshot, type Snapshot } from '../../fs/snapshot.js';
import { DifferenceDraft, isEmpty, keysOf, type KeyDifference } from '../change.js';
import { haveSameContent, NO_DIFFERENCE, PORTION } from './difference-parts.js';

export const NO_FILES: Found['files'] = new Map();

/** What was known of a file when it was last seen. */
export interface LastFile {
  /** The links that led to it, see `LinkChain.links`. */
  readonly links: string;
  /** Identifies the file, see `SeenFile.inode`; undefined: it was not there. */
  readonly inode: string | undefined;
}

/** The last report, which at first is the assumption that nothing was there. */
export class LastReport {
  readonly #path: string;
  #snapshot: Snapshot;
  /** The files as they were when they last equalled what was reported. */
  #files: Found['files'] = NO_FILES;
  /** The files that are gone, as they were last seen. */
  #gone: Map<string, LastFile> | undefined;
  /** The links of the last target that was found; undefined: none was. */
  #links: string | undefined;
  /** The links that have led to nothing since. */
  #deadLinks: string | undefined;

  /** @param path the watched path. */
  constructor(path: string) {
    this.#path = path;
    this.#snapshot = new MissingSnapshot(path);
  }

  get snapshot(): Snapshot {
    return this.#snapshot;
  }

  /** See `LinkChain.links`; undefined: nothing was found yet. */
  get links(): string | undefined {
    return this.#links;
  }

  /**
   * Whether links were retargeted, and so lead to what was there already. Links to what was never seen may be those to a
   * file that is being created, unless they lead through a volume.
   * @param before the links that were known; undefined: nothing was seen behind them.
   */
  isRetargeted(links: string, before: string | undefined): boolean {
    if (links === this.#deadLinks) return false;
    return before === undefined ? leadThroughVolume(links) : links !== before;
  }

  /** Nothing is behind these links at present. */
  lost(links: string): void {
    this.#deadLinks = links;
  }

  /** Whether something else was there, such as a directory where a file is now. The files may be the same. */
  isOtherKind(kind: Snapshot['kind']): boolean {
    const before = this.#snapshot.kind;
    return before !== 'missing' && before !== kind;
  }

  /** What differs from it in these files; undefined: nothing is there. */
  *difference(files: Found['files'] = NO_FILES): Effects<KeyDifference> {
    const before = this.#files;
    // The first report may be of many files.
    if (before.size === 0) return { ...NO_DIFFERENCE, added: [...files.keys()] };
    const difference = new DifferenceDraft();
    let compared = 0;
    for (const key of keysThatDiffer(before, files)) {
      difference.compare(key, before.get(key), files.get(key), haveSameContent);
      compared += 1;
      if (compared % PORTION === 0) yield LONG_PAUSE;
    }
    return difference;
  }

  /** Marks what was read after a swap as reported. Returns what differs; undefined if nothing does. */
  swapped({ snapshot, files, links }: Swap): KeyDifference | undefined {
    const before = this.#files;
    const difference = new DifferenceDraft();
    files.forEach((file, key) => difference.compare(key, before.get(key), file, haveSameContent));
    if (before.size + difference.added.length > files.size) {
      for (const key of before.keys()) if (!files.has(key)) difference.removed.push(key);
    }
    this.found(snapshot, files, links);
    return isEmpty(difference) ? undefined : difference;
  }

  /** The keys of those of these files whose contents differ. */
  changedBy(replaced: readonly Replacement[]): string[] {
    const isChanged = ({ key, file }: Replacement): boolean => {
      const before = this.#files.get(key);
      return before !== undefined && !haveSameContent(before, file);
    };
    return replaced.filter(isChanged).map(({ key }) => key);
  }

  /** Marks these files as reported: that of a path, or some of a directory or a tree. */
  replaced(replaced: readonly Replacement[]): void {
    this.#files = withEntries(this.#files, new Map(replaced.map(({ key, file }) => [key, file])));
    const [first] = replaced;
    if (this.#snapshot.kind === 'file' && first) {
      this.#snapshot = first.file.snapshot;
      return;
    }
    const states = new Map(replaced.map(({ key, file }) => [key, file.snapshot]));
    this.#snapshot = setLike(this.#snapshot, withEntries(this.#snapshot.files, states));
  }

  /** What was found, except for this difference: there, what was reported. */
  *without(seen: Found, difference: KeyDifference): Effects<Found> {
    const keys = keysOf(difference);
    const files = yield* changedMap(seen.files, entriesOf(this.#files, keys));
    const states = yield* changedMap(seen.snapshot.files, entriesOf(this.#snapshot.files, keys));
    return { ...seen, files, snapshot: setLike(seen.snapshot, states) };
  }

  /** The file with this key as it was last seen, whether it is there or gone. */
  file(key: string): LastFile | undefined {
    return this.#files.get(key) ?? this.#gone?.get(key);
  }

  /** Where the file with this key was found. */
  pathOf(key: string): string | undefined {
    return this.#files.get(key)?.snapshot.realPath;
  }

  /** Takes what is there for reported. */
  found(snapshot: FileSnapshot | SetSnapshot, files: Found['files'], links: string): void {
    // A file of a group that is gone may come back through a link; a file of a directory may be replaced.
    if (snapshot.kind === 'group') this.#noteGone(files);
    else this.#gone = undefined;
    this.#files = files;
    this.#snapshot = snapshot;
    this.#links = links;
    this.#deadLinks = undefined;
  }

  /** Takes it for reported that nothing is there. */
  missing(): void {
    this.#noteGone(NO_FILES);
    this.#files = NO_FILES;
    this.#snapshot = new MissingSnapshot(this.#path);
  }

  #noteGone(files: Found['files']): void {
    for (const key of keysThatDiffer(this.#files, files)) {
      const last = this.#files.get(key);
      if (files.has(key)) this.#gone?.delete(key);
      else if (last) (this.#gone ??= new Map()).set(key, { links: last.links, inode: last.inode });
    }
  }
}

/** The same set with other files. */
function setLike(snapshot: Snapshot, files: SetSnapshot['files']): SetSnapshot {
  const { kind, path, realPath, revision } = snapshot as SetSnapshot;
  return new SetSnapshot({ kind, path, realPath, revision, files });
}

/** What the map holds under these keys; undefined: nothing. */
function entriesOf<V>(map: ReadonlyMap<string, V>, keys: readonly string[]): Map<string, V | undefined> {
  return new Map(keys.map((key) => [key, map.get(key)]));
}
