/** What was last reported, and what is compared with it. */
import { LONG_PAUSE, type Effects } from '../../fs/effects.js';
import { keysThatDiffer, PersistentMap, withEntries } from '../../fs/persistent-map.js';
import { changedMap } from '../../fs/tree-draft.js';
import type { Found, Replacement, Swap } from '../../fs/observation.js';
import { MissingSnapshot, SetSnapshot, type FileSnapshot, type Snapshot } from '../../fs/snapshot.js';
import { differenceOf, keysOf, type KeyDifference } from '../change.js';
import { haveSameContent, PORTION, together } from './difference-parts.js';

const NOTHING: Found['files'] = new Map();

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
  #files: Found['files'] = NOTHING;
  /** The files that are gone, as they were last seen. */
  #gone: Map<string, LastFile> | undefined;
  /** The links of the last target that was found. */
  #links = '';

  /** @param path the watched path. */
  constructor(path: string) {
    this.#path = path;
    this.#snapshot = new MissingSnapshot(path);
  }

  get snapshot(): Snapshot {
    return this.#snapshot;
  }

  /** See `LinkChain.links`. */
  get links(): string {
    return this.#links;
  }

  /** What differs from it in these files; undefined: nothing is there. */
  *difference(files: Found['files'] = NOTHING): Effects<KeyDifference> {
    const before = this.#files;
    // The first report may be of many files.
    if (before.size === 0) return { added: [...files.keys()], changed: [], removed: [] };
    const parts: KeyDifference[] = [];
    let keys: string[] = [];
    for (const key of keysThatDiffer(before, files)) {
      keys.push(key);
      if (keys.length < PORTION) continue;
      parts.push(differenceOf(before, files, keys, haveSameContent));
      keys = [];
      yield LONG_PAUSE;
    }
    parts.push(differenceOf(before, files, keys, haveSameContent));
    return together(parts);
  }

  /** Takes for reported what a swap has brought. Returns what differs; undefined if nothing does. */
  swapped({ snapshot, files, links }: Swap): KeyDifference | undefined {
    const before = this.#files;
    const added: string[] = [];
    const changed: string[] = [];
    const removed: string[] = [];
    files.forEach((file, key) => {
      const earlier = before.get(key);
      if (!earlier) added.push(key);
      else if (!haveSameContent(earlier, file)) changed.push(key);
    });
    if (before.size + added.length > files.size) {
      for (const key of before.keys()) if (!files.has(key)) removed.push(key);
    }
    this.found(snapshot, files, links);
    const isSame = added.length === 0 && changed.length === 0 && removed.length === 0;
    return isSame ? undefined : { added, changed, removed };
  }

  /** The keys of those of these files whose contents differ. */
  changedBy(replaced: readonly Replacement[]): string[] {
    const isChanged = ({ key, file }: Replacement): boolean => {
      const before = this.#files.get(key);
      return before !== undefined && !haveSameContent(before, file);
    };
    return replaced.filter(isChanged).map(({ key }) => key);
  }

  /** Takes these files for reported: that of a path, or some of a directory or a tree. */
  replaced(replaced: readonly Replacement[]): void {
    const keys = replaced.map(({ key }) => key);
    const files = new Map(replaced.map(({ key, file }) => [key, file]));
    this.#files = withEntries(this.#files, keys, files);
    const [first] = replaced;
    if (this.#snapshot.kind === 'file' && first) {
      this.#snapshot = first.file.snapshot;
      return;
    }
    const states = new Map(replaced.map(({ key, file }) => [key, file.snapshot]));
    this.#snapshot = setLike(this.#snapshot, withEntries(this.#snapshot.files, keys, states));
  }

  /** What was found, but where the difference is, what was reported. */
  *without(seen: Found, difference: KeyDifference): Effects<Found> {
    const keys = keysOf(difference);
    const files = yield* withManyEntries(seen.files, keys, this.#files);
    const states = yield* withManyEntries(seen.snapshot.files, keys, this.#snapshot.files);
    return { ...seen, files, snapshot: setLike(seen.snapshot, states) };
  }

  /** The file with this key as it was last seen, whether it is there or gone. */
  file(key: string): LastFile | undefined {
    return this.#files.get(key) ?? this.#gone?.get(key);
  }

  /** Takes what is there for reported. */
  found(snapshot: FileSnapshot | SetSnapshot, files: Found['files'], links: string): void {
    // A file of a group that is gone may come back through a link; a file of a directory may be replaced.
    if (snapshot.kind === 'group') this.#noteGone(files);
    else this.#gone = undefined;
    this.#files = files;
    this.#snapshot = snapshot;
    this.#links = links;
  }

  /** Takes it for reported that nothing is there. */
  missing(): void {
    this.#noteGone(NOTHING);
    this.#files = NOTHING;
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

/** The same as `withEntries`, in slices where there may be many. */
function* withManyEntries<V>(
  map: ReadonlyMap<string, V>,
  keys: readonly string[],
  from: ReadonlyMap<string, V>,
): Effects<ReadonlyMap<string, V>> {
  if (!(map instanceof PersistentMap)) return withEntries(map, keys, from);
  return yield* changedMap(map as PersistentMap<V>, new Map(keys.map((key) => [key, from.get(key)])));
}
