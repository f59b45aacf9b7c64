import type { BigIntStats } from 'node:fs';

import type { WatchedDirectory } from '../core/watch-backend.js';
import type { Effects } from './effects.js';
import { identityIn, isFinished, PERMISSIONS, signatureOf, statDigest } from './file-identity.js';
import { keysThatDiffer, PersistentMap } from './persistent-map.js';
import { changedMap, Draft, Subtrees } from './tree-draft.js';
import type { TreeScope } from './tree-scope.js';

/** A regular file in a directory or a tree; for a link to a file, the file that it leads to. */
export interface TreeFile {
  /** Its path: absolute, every link resolved. */
  readonly path: string;
  /** The links that led to it, in a tree from its root, see `LinkChain.links`. */
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
  /**
   * The signature of each directory when it was last listed: while a directory has it, no entry of it was added,
   * removed or replaced.
   */
  readonly listed: PersistentMap<string>;
}

/** What was found under its own path, what links lead to, and both together. */
interface TreeParts extends TreePart {
  readonly own: OwnPart;
  readonly linked: TreePart;
}

/** The result of a walk. */
export interface TreeWalk extends TreeParts {
  readonly kind: 'tree';
  /** Absolute, every link resolved. */
  readonly root: string;
  /** The directories at which a file system begins, by identity; the caller knows that of the root. */
  readonly mounts: ReadonlyMap<string, string>;
  /** The directories on the way to the files that links lead to, outside of the tree. */
  readonly consulted: readonly WatchedDirectory[];
}

/** The root is not a directory. */
export interface NoTree {
  readonly kind: 'missing' | 'not-directory' | 'unreadable';
  readonly root: string;
  readonly errno: string;
}

/** A file system that must not be entered begins at `path`; nothing behind it was touched. */
export interface DisallowedMount {
  readonly kind: 'disallowed';
  readonly root: string;
  readonly path: string;
}

/** The result of a walk, or why there is none. */
export type TreeObservation = TreeWalk | NoTree | DisallowedMount;

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

  *part(): Effects<TreePart> {
    return {
      files: yield* this.files.map(),
      directories: yield* this.directories.map(),
      unreadable: yield* this.unreadable.map(),
    };
  }

  /**
   * Removes what was not found again. Files below what is unreadable may still be there, and are kept as long as they
   * are in the scope.
   * @param isKept what was not visited.
   * @param alsoUnreadable what the other part could not read.
   */
  *sweep(
    paths: Iterable<string>,
    below: Subtrees,
    scope: TreeScope,
    isKept: (path: string) => boolean,
    alsoUnreadable: PersistentMap<string> = PersistentMap.empty(),
  ): Effects<void> {
    for (const draft of [this.unreadable, this.directories]) yield* draft.sweep(paths, below, isKept);
    const unreadable = new Set([...(yield* this.unreadable.map()).keys(), ...alsoUnreadable.keys()]);
    const insideUnreadable = new Subtrees(unreadable);
    yield* this.files.sweep(
      paths,
      below,
      (path) =>
        isKept(path) || ((unreadable.has(path) || insideUnreadable.has(path)) && scope.includes(path)),
    );
  }
}

/** Both parts together, derived from those before. */
export function* joinParts(own: OwnPart, linked: TreePart, before?: TreeParts): Effects<TreeParts> {
  return {
    own,
    linked,
    files: yield* joined(own.files, linked.files, before?.own.files, before?.linked.files, before?.files),
    directories: yield* joined(
      own.directories,
      linked.directories,
      before?.own.directories,
      before?.linked.directories,
      before?.directories,
    ),
    unreadable: yield* joined(
      own.unreadable,
      linked.unreadable,
      before?.own.unreadable,
      before?.linked.unreadable,
      before?.unreadable,
    ),
  };
}

/** The second map on top of the first, derived from both and the result before. */
export function* joined<V>(
  own: PersistentMap<V>,
  linked: PersistentMap<V>,
  ownBefore = PersistentMap.empty<V>(),
  linkedBefore = PersistentMap.empty<V>(),
  before = PersistentMap.empty<V>(),
): Effects<PersistentMap<V>> {
  if (linked.size === 0) return own;
  const differing = [...keysThatDiffer(ownBefore, own), ...keysThatDiffer(linkedBefore, linked)];
  return yield* changedMap(before, new Map(differing.map((key) => [key, linked.get(key) ?? own.get(key)])));
}

/** A file with this status, whatever was known at its place: that, if nothing differs. */
export function treeFileAt(
  path: string,
  links: string,
  stat: BigIntStats,
  known: TreeFile | undefined,
): TreeFile {
  const signature = signatureOf(stat);
  // The usual case, which makes the rest unnecessary.
  if (known?.signature === signature && known.links === links && known.path === path) return known;
  return {
    path,
    links,
    inode: identityIn(signature),
    statDigest: statDigest(stat),
    signature,
    finished: isFinished(stat),
    mode: Number(stat.mode) & PERMISSIONS,
    size: Number(stat.size),
  };
}

/** Whether nothing differs between two files. */
export function sameFile(a: TreeFile, b: TreeFile): boolean {
  return a.path === b.path && a.links === b.links && a.signature === b.signature && a.mode === b.mode;
}

function sameDirectory(a: TreeDirectory, b: TreeDirectory): boolean {
  return a.path === b.path && a.identity === b.identity && a.linked === b.linked && a.isVolume === b.isVolume;
}
