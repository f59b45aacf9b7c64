import { Draft } from './draft.js';

/** A regular file in a tree, or a link to one. */
export interface TreeFile {
  /** `link`: what follows is of the file it leads to. */
  readonly kind: 'file' | 'link';
  /** Where it stands: absolute, all links resolved. */
  readonly path: string;
  /** Of a `link`: the links that led to it, see `LinkChain.links`. */
  readonly links: string;
  /** Which file it is, see `inodeOf`. */
  readonly inode: string;
  /** Which file it is and whether it was touched: device, inode, size, mtime and ctime. */
  readonly identity: string;
  /** The same, with the moment it was made, as `signatureOf`. */
  readonly signature: string;
  /** Its inode was changed after its last byte was written. */
  readonly finished: boolean;
  /** Permission bits, as 0o644. */
  readonly mode: number;
  /** Bytes. */
  readonly size: number;
}

/** A directory in a tree. */
export interface TreeDirectory {
  /** Absolute, every link resolved. */
  readonly path: string;
  /** See `inodeOf`. */
  readonly identity: string;
  /** It was reached through a link, so that a recursive watch of the root does not reach it. */
  readonly linked: boolean;
}

/** What was found, by path relative to the root: `/` between its parts, `''` for the root, in no order. */
export interface TreePart {
  readonly files: ReadonlyMap<string, TreeFile>;
  readonly directories: ReadonlyMap<string, TreeDirectory>;
  /** Directories that could not be listed, and why (errno). */
  readonly unreadable: ReadonlyMap<string, string>;
}

/** What stands under its own path. */
export interface OwnPart extends TreePart {
  /** All links, those that lead nowhere included, and where they stand (absolute). */
  readonly links: ReadonlyMap<string, string>;
}

/** One part while it is walked. */
export class PartDraft {
  readonly files: Draft<TreeFile>;
  readonly directories: Draft<TreeDirectory>;
  readonly unreadable: Draft<string>;
  readonly links: Draft<string>;

  constructor(previous?: OwnPart) {
    this.files = new Draft(sameFile, previous?.files);
    this.directories = new Draft(sameDirectory, previous?.directories);
    this.unreadable = new Draft<string>(Object.is, previous?.unreadable);
    this.links = new Draft<string>(Object.is, previous?.links);
  }

  sweep(key: string): void {
    // A scan of everything, which a file need not cost.
    const below = this.directories.map.has(key);
    for (const draft of [this.files, this.unreadable, this.links, this.directories]) draft.sweep(key, below);
  }
}

/** Both parts together: the maps from before where they are the same. */
export function joinParts(
  own: OwnPart,
  linked: PartDraft,
  before?: TreePart & { readonly own: OwnPart },
): TreePart {
  return {
    files: joined(own.files, linked.files.map, sameFile, before?.own.files, before?.files),
    directories: joined(
      own.directories,
      linked.directories.map,
      sameDirectory,
      before?.own.directories,
      before?.directories,
    ),
    unreadable: joined(
      own.unreadable,
      linked.unreadable.map,
      Object.is,
      before?.own.unreadable,
      before?.unreadable,
    ),
  };
}

function joined<V>(
  own: ReadonlyMap<string, V>,
  linked: ReadonlyMap<string, V>,
  same: (a: V, b: V) => boolean,
  ownBefore: ReadonlyMap<string, V> | undefined,
  before: ReadonlyMap<string, V> | undefined,
): ReadonlyMap<string, V> {
  if (linked.size === 0) return own;
  const isBefore = ([key, value]: [string, V]): boolean => {
    const known = before?.get(key);
    return known !== undefined && same(known, value);
  };
  const unchanged = before && own === ownBefore && before.size === own.size + linked.size;
  return unchanged && [...linked].every(isBefore) ? before : new Map([...own, ...linked]);
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
  return a.path === b.path && a.identity === b.identity && a.linked === b.linked;
}
