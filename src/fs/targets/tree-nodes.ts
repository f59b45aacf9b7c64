/** The known entries of a directory or a tree, by key: the path relative to the root, `''` for the root. */

import { dirname, insidePath } from '../../core/ports/platform-path.js';
import type { WatchedDirectory } from '../../core/ports/watch-backend.js';
import { nextSlice, slices, type Steps } from '../../core/scheduling/steps.js';
import { mergeDirectories, type ConsultedDirectory } from '../consulted.js';
import { ReadTotals, type Kept, type ReadLimits } from '../read-limits.js';
import type { Inode } from '../file-identity.js';
import type { Extent } from '../observation.js';
import type { Way } from '../resolve.js';
import type { FileSnapshot } from '../snapshot.js';
import type { TargetError } from '../target-error.js';
import { childOf, nameOf, parentOf, type TreeScope } from '../tree-scope.js';
import { LinkRoutes } from './link-routes.js';
import type { ReachedDirectory, KnownVolume } from './volume.js';

/** How a directory is read. */
export interface TreeOptions extends ReadLimits {
  /** The watched path, absolute. */
  readonly path: string;
  /** Whether everything below its directories belongs to it. */
  readonly isRecursive: boolean;
  /** Whether links to directories are followed. */
  readonly followLinks: boolean;
}

/** What a look at a tree needs. */
export interface TreeLookOptions {
  readonly nodes: TreeNodes;
  readonly options: TreeOptions;
  /** The directory at the root. */
  readonly root: ReachedDirectory;
  readonly scope: TreeScope;
  readonly extent: Extent;
}

/** A directory, and whether it was reached through a link. */
export interface Visited extends ReachedDirectory {
  readonly key: string;
  readonly isLinked: boolean;
}

/** A directory that was listed. */
export interface TreeDirectory {
  readonly key: string;
  /** Every link resolved. */
  readonly path: string;
  readonly way: Way;
  readonly identity: string;
  /** Its inode when it was listed. */
  readonly inode: Inode;
  /** Since when it has looked like this, monotonic ms. */
  readonly since: number;
  /** Whether every change since it was listed shows in its inode. */
  readonly timestampsAreReliable: boolean;
  /** Whether a link leads to it, so that a recursive watch of the root does not reach it. */
  readonly isLinked: boolean;
  /** The names of its entries that were visited; of a volume, its keys. */
  readonly names: Set<string>;
  /** Whether entries that begin with two dots are hidden: in a volume, or a former volume without its link. */
  readonly isHiding: boolean;
  /** Its files if it is a volume, which shows only its keys. */
  readonly volume: KnownVolume | undefined;
}

const TOO_LONG =
  'the paths of some of its entries are longer than the system allows: these entries are left out. Shorten the names of the directories above them';

const NO_NAMES: ReadonlySet<string> = new Set();

/** The nodes of a tree. */
export class TreeNodes {
  readonly directories = new Map<string, TreeDirectory>();
  readonly files = new Map<string, FileSnapshot>();
  /** What was consulted to find the target of each link. */
  readonly routes = new LinkRoutes();
  /** Entries that currently cannot be looked up, and directories that cannot be listed. They stay as last known. */
  readonly unreadable = new Map<string, TargetError>();
  /** The identities of directories behind links that have another key. */
  readonly #skipped = new Map<string, string>();
  /** Links that lead to a key that is published, but has no link yet, with its volume. */
  readonly unlinked = new Map<string, string>();
  readonly #byPath = new Map<string, string>();
  readonly #byIdentity = new Map<string, string>();
  /** The directories that are listed, to listen to; each is the same object until it is another directory. */
  readonly #listed = new Map<string, WatchedDirectory>();
  /** Entries whose path is longer than any call takes. They are left out. */
  readonly #tooLong = new Set<string>();
  readonly #totals: ReadTotals;
  /** What is kept of the files that were read. */
  kept: Kept;
  /** The keys whose files have changed since the last snapshot. */
  changed = new Set<string>();
  /** Whether directories or links have changed since `consulted` was last computed. */
  haveDirectoriesChanged = true;

  /** Undefined for a plain directory. */
  readonly #treeRoot: string | undefined;

  /** @param root the path of the root, every link resolved. */
  constructor(options: TreeOptions, root: string) {
    this.#treeRoot = options.isRecursive ? root : undefined;
    this.#totals = new ReadTotals(options);
    this.kept = this.#totals.kept;
  }

  /** What the limits allow to keep. */
  get allowed(): Kept {
    return this.#totals.kept;
  }

  /** The limit that keeps something from being read, in words. */
  get limited(): string | undefined {
    return this.#totals.limited ?? (this.#tooLong.size > 0 ? TOO_LONG : undefined);
  }

  /** Why the root, or a part with known files, cannot be read now. Other parts that could never be read are left out. */
  get unreadablePart(): TargetError | undefined {
    if (this.unreadable.size === 0) return undefined;
    for (const [key, error] of this.unreadable) if (key === '' || this.#isKnown(key)) return error;
    // A directory that may be listed but not entered.
    let first: TargetError | undefined;
    for (const name of this.directories.get('')?.names ?? []) {
      const error = this.unreadable.get(name);
      if (!isOfLookup(error)) return undefined;
      first ??= error;
    }
    return first;
  }

  /** The directory at this path, every link resolved. */
  directoryAt(path: string): TreeDirectory | undefined {
    const key = this.#byPath.get(path);
    return key === undefined ? undefined : this.directories.get(key);
  }

  /** The directory that contains this entry. */
  parentOf(key: string): TreeDirectory | undefined {
    return this.directories.get(parentOf(key));
  }

  /**
   * Whether a directory is shown under another key, so that this key is skipped: its own path comes before links to it, and
   * of several links the first by name.
   */
  isAlias(key: string, identity: string, isLinked: boolean): boolean {
    const otherKey = this.#byIdentity.get(identity);
    const other = otherKey === undefined || otherKey === key ? undefined : this.directories.get(otherKey);
    const isThis = isLinked && other !== undefined && !isBefore(key, other);
    if (isThis) this.#skip(key, identity);
    else if (other?.isLinked) this.#skip(other.key, identity);
    return isThis;
  }

  #isKnown(key: string): boolean {
    if (this.files.has(key)) return true;
    const { names } = this.directories.get(key) ?? {};
    return names !== undefined && [...names].some((name) => this.#isKnown(childOf(key, name)));
  }

  /** Remembers that the directory has this entry. */
  name(key: string): void {
    if (key !== '') this.parentOf(key)?.names.add(nameOf(key));
  }

  /** From now on, a volume has these keys. */
  setKeys({ key, names: before }: TreeDirectory, names: ReadonlySet<string>): void {
    for (const name of before) if (!names.has(name)) this.remove(childOf(key, name));
    before.clear();
    for (const name of names) before.add(name);
  }

  setFile(key: string, file: FileSnapshot): void {
    const before = this.files.get(key);
    if (before === file) return;
    if (before) this.#totals.count(before.size, -1);
    this.#totals.count(file.size, 1);
    this.files.set(key, file);
    this.changed.add(key);
  }

  setDirectory(directory: TreeDirectory): void {
    const before = this.directories.get(directory.key);
    this.directories.set(directory.key, directory);
    this.#skipped.delete(directory.key);
    this.#byPath.set(directory.path, directory.key);
    this.#byIdentity.set(directory.identity, directory.key);
    const { key, path, identity, isLinked } = directory;
    if (before?.path === path && before.identity === identity && before.isLinked === isLinked) return;
    const treeRoot = isLinked ? undefined : this.#treeRoot;
    this.#listed.set(key, treeRoot === undefined ? { path, identity } : { path, identity, treeRoot });
    this.haveDirectoriesChanged = true;
  }

  /** Each of these directories is listed again when it is visited next, because not all of its entries were visited. */
  doubt(keys: Iterable<string>): void {
    for (const key of keys) {
      const directory = this.directories.get(key);
      if (directory) this.directories.set(key, { ...directory, timestampsAreReliable: false });
    }
  }

  setLink(key: string, route: readonly ConsultedDirectory[]): void {
    if (this.routes.set(key, route)) this.haveDirectoriesChanged = true;
  }

  setUnlinked(key: string, volume: string | undefined): void {
    if (volume === undefined) this.unlinked.delete(key);
    else this.unlinked.set(key, volume);
  }

  setUnreadable(key: string, error: TargetError): void {
    if (this.unreadable.get(key)?.path !== error.path) this.haveDirectoriesChanged = true;
    this.unreadable.set(key, error);
    this.name(key);
  }

  /** An entry whose path is too long for any call. Such a call fails also if the entry is gone: its directory knows. */
  leaveOut(key: string): void {
    if (this.parentOf(key)?.names.has(nameOf(key))) this.#tooLong.add(key);
  }

  setReadable(key: string): void {
    if (this.unreadable.delete(key)) this.haveDirectoriesChanged = true;
  }

  /** Leaves out a directory that has another key. */
  #skip(key: string, identity: string): void {
    this.removeFile(key);
    this.removeDirectory(key);
    this.#skipped.set(key, identity);
  }

  /** The keys that were skipped because of another key that is gone, each taken out; not those after the new one. */
  takeOrphans(): string[] {
    const orphans: string[] = [];
    for (const [key, identity] of this.#skipped) {
      const shown = this.#byIdentity.get(identity);
      const other = shown === undefined ? undefined : this.directories.get(shown);
      if (!other || isBefore(key, other)) orphans.push(key);
    }
    for (const key of orphans) this.#skipped.delete(key);
    return orphans;
  }

  /** Removes the entry with this key and everything below it. */
  remove(key: string): void {
    this.removeFile(key);
    this.removeLink(key);
    this.removeDirectory(key);
  }

  /** Removes an entry with everything below it, in slices: there may be much. */
  *clear(key: string): Steps<void> {
    yield* nextSlice();
    yield* this.keep(key, NO_NAMES);
    this.remove(key);
  }

  /** The same of a directory. */
  *clearDirectory(key: string): Steps<void> {
    yield* this.keep(key, NO_NAMES);
    this.removeDirectory(key);
  }

  /** Removes the entries that a directory no longer has. */
  *keep(key: string, names: ReadonlySet<string>): Steps<void> {
    const slice = slices();
    for (const name of this.directories.get(key)?.names ?? []) {
      yield* slice();
      if (!names.has(name)) yield* this.clear(childOf(key, name));
    }
  }

  removeLink(key: string): void {
    if (this.routes.delete(key)) this.haveDirectoriesChanged = true;
  }

  removeFile(key: string): void {
    const file = this.files.get(key);
    if (!file) return;
    this.files.delete(key);
    this.#totals.count(file.size, -1);
    this.changed.add(key);
  }

  removeDirectory(key: string): void {
    this.setReadable(key);
    this.#tooLong.delete(key);
    this.#skipped.delete(key);
    this.unlinked.delete(key);
    const directory = this.directories.get(key);
    if (!directory) return;
    this.directories.delete(key);
    this.#listed.delete(key);
    if (this.#byPath.get(directory.path) === key) this.#byPath.delete(directory.path);
    if (this.#byIdentity.get(directory.identity) === key) this.#byIdentity.delete(directory.identity);
    this.haveDirectoriesChanged = true;
    for (const name of directory.names) this.remove(childOf(key, name));
  }

  /**
   * The directories to listen to. One that cannot be read cannot be listened to, either; that it can be read again is an
   * event of the directory above it.
   * @param route the directories that were consulted to find the root.
   */
  watched(route: readonly WatchedDirectory[]): WatchedDirectory[] {
    const unreadable = new Set([...this.unreadable.values()].map(({ path }) => insidePath(path)));
    const all = [...route, ...this.routes.directories()];
    for (const directory of this.#listed.values()) {
      if (!isBelow(directory.path, unreadable)) all.push(directory);
    }
    return mergeDirectories(all);
  }
}

/** Whether a link is the one that shows a directory, instead of another key. */
const isBefore = (key: string, other: TreeDirectory): boolean => other.isLinked && key < other.key;

const isOfLookup = (error: TargetError | undefined): boolean =>
  (error?.cause as NodeJS.ErrnoException | undefined)?.syscall === 'lstat';

/** Whether a path is one of these, or below one of them. */
function isBelow(path: string, these: ReadonlySet<string>): boolean {
  if (these.size === 0) return false;
  for (let place = path; place !== dirname(place); place = dirname(place)) if (these.has(place)) return true;
  return false;
}
