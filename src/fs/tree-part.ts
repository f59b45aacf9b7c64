import { keysThatDiffer, PersistentMap } from './persistent-map.js';
import { Draft, Subtrees } from './tree-draft.js';

/** A regular file in a tree, or a link to one. */
export interface TreeFile {
  /** `link`: the other fields describe the file that it leads to. */
  readonly kind: 'file' | 'link';
  /** Its path: absolute, every link resolved. */
  readonly path: string;
  /** Of a `link`: the links that led to it, see `LinkChain.links`. */
  readonly links: string;
  /** Identifies the file, see `identityOf`. */
  readonly inode: string;
  /** Represents its content. */
  readonly statDigest: string;
  /** Identity and content with the time of creation, see `signatureOf`. */
  readonly signature: string;
  /** Whether its inode was changed after its last write. */
  readonly finished: boolean;
  /** Permission bits, as 0o644. */
  readonly mode: number;
  /** Size in bytes. */
  readonly size: number;
}

/** A directory in a tree. */
export interface TreeDirectory {
  /** Absolute, every link resolved. */
  readonly path: string;
  /** See `identityOf`. */
  readonly identity: string;
  /** Whether it was reached through a link, so that a recursive watch of the root does not reach it. */
  readonly linked: boolean;
  /** Whether it has a `..data` link, or had one: in the gap of a swap it has none. */
  readonly isVolume: boolean;
}

/** What was found, by path relative to the root: `/` between its parts, `''` for the root, unordered. */
export interface TreePart {
  readonly files: PersistentMap<TreeFile>;
  readonly directories: PersistentMap<TreeDirectory>;
  /** What could not be read, and why (errno). The files below are those that were last seen there. */
  readonly unreadable: PersistentMap<string>;
}

/** What was found under its own path. */
export interface OwnPart extends TreePart {
  /** The paths of all links (absolute), including those that lead nowhere. */
  readonly links: PersistentMap<string>;
  /** The identities of the directories at which a file system begins, except the root. */
  readonly mounts: PersistentMap<string>;
}

/** What was found under its own path, what links lead to, and both together. */
export interface TreeParts extends TreePart {
  readonly own: OwnPart;
  readonly linked: TreePart;
}

/** One part during a walk. */
export class PartDraft {
  readonly files: Draft<TreeFile>;
  readonly directories: Draft<TreeDirectory>;
  readonly unreadable: Draft<string>;

  constructor(previous?: TreePart) {
    this.files = new Draft(sameFile, previous?.files);
    this.directories = new Draft(sameDirectory, previous?.directories);
    this.unreadable = new Draft<string>(Object.is, previous?.unreadable);
  }

  get part(): TreePart {
    return {
      files: this.files.map,
      directories: this.directories.map,
      unreadable: this.unreadable.map,
    };
  }

  /**
   * Removes what was not found again. Files below what is unreadable may still be there, and are kept.
   * @param alsoUnreadable what the other part could not read.
   */
  sweep(
    paths: Iterable<string>,
    below: Subtrees,
    alsoUnreadable: PersistentMap<string> = PersistentMap.empty(),
  ): void {
    for (const draft of [this.unreadable, this.directories]) draft.sweep(paths, below);
    const unreadable = new Set([...this.unreadable.map.keys(), ...alsoUnreadable.keys()]);
    const insideUnreadable = new Subtrees(unreadable);
    this.files.sweep(paths, below, (path) => unreadable.has(path) || insideUnreadable.has(path));
  }
}

/** Both parts together, derived from those before. */
export function joinParts(own: OwnPart, linked: TreePart, before?: TreeParts): TreeParts {
  return {
    own,
    linked,
    files: joined(own.files, linked.files, before?.own.files, before?.linked.files, before?.files),
    directories: joined(
      own.directories,
      linked.directories,
      before?.own.directories,
      before?.linked.directories,
      before?.directories,
    ),
    unreadable: joined(
      own.unreadable,
      linked.unreadable,
      before?.own.unreadable,
      before?.linked.unreadable,
      before?.unreadable,
    ),
  };
}

function joined<V>(
  own: PersistentMap<V>,
  linked: PersistentMap<V>,
  ownBefore = PersistentMap.empty<V>(),
  linkedBefore = PersistentMap.empty<V>(),
  before = PersistentMap.empty<V>(),
): PersistentMap<V> {
  if (linked.size === 0) return own;
  const differing = [...keysThatDiffer(ownBefore, own), ...keysThatDiffer(linkedBefore, linked)];
  return before.with(new Map(differing.map((key) => [key, linked.get(key) ?? own.get(key)])));
}

function sameFile(a: TreeFile, b: TreeFile): boolean {
  return (
    a.kind === b.kind &&
    a.path === b.path &&
    a.links === b.links &&
    a.signature === b.signature &&
    a.mode === b.mode
  );
}

function sameDirectory(a: TreeDirectory, b: TreeDirectory): boolean {
  return a.path === b.path && a.identity === b.identity && a.linked === b.linked && a.isVolume === b.isVolume;
}
