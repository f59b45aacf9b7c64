/**
 * What stands below a directory at one instant, as identities: nothing is read.
 *
 * A walk has two parts. The first visits what stands under its own path; a rewalk repeats of it only what is named.
 * The second visits what links lead to. It is always done anew, since nothing tells of what happens there, and after
 * the first, so that each directory is visited once, under its own path if it has one in the tree. So links make
 * neither cycles nor doubles, and what comes out does not depend on the order in which things happened.
 */
import type { BigIntStats } from 'node:fs';

import { errnoOf, hasMoved } from './errors.js';
import { inodeOf, resolveChain, signatureOf } from './link-chain.js';
import type { PathGlobs } from './path-globs.js';
import { call, type Steps } from './steps.js';
import { joinParts, PartDraft, type OwnPart, type TreePart } from './tree-walk/tree-part.js';

export type { TreeDirectory, TreeFile, TreePart } from './tree-walk/tree-part.js';

/** What a walk leaves out and enters. */
export interface TreeWalkOptions {
  /** What they match is left out, and what is below it. */
  readonly ignore: PathGlobs;
  /** Whether links to directories are followed; links to files always are. */
  readonly followLinks: boolean;
  /** With more files than this the walk ends. */
  readonly maxFiles: number;
  /** File systems that may be entered, see `resolveChain`; undefined means all. */
  readonly familiar?: ReadonlyMap<string, unknown> | undefined;
}

/** A tree that was walked: both parts together. */
export interface TreeWalk extends TreePart {
  readonly kind: 'tree';
  /** Absolute, every link resolved. */
  readonly root: string;
  /** False when there are more than `maxFiles`: then these are some of them. */
  readonly complete: boolean;
  /** The directories at which a file system begins, by identity; that of the root is for the caller to know. */
  readonly mounts: ReadonlyMap<string, string>;
  /** The first part alone. */
  readonly own: OwnPart;
}

/** What stands at the root when that is no tree. */
export interface NoTree {
  readonly kind: 'missing' | 'not-directory' | 'unreadable';
  readonly root: string;
  readonly errno: string;
}

/** A file system begins at `path` that was not to be entered; nothing behind it was touched. */
export interface UnfamiliarTree {
  readonly kind: 'unfamiliar';
  readonly root: string;
  readonly path: string;
}

/** What a walk finds. */
export type TreeSighting = TreeWalk | NoTree | UnfamiliarTree;

/**
 * Walks a whole tree. What vanishes meanwhile, or cannot be looked at, is left out.
 * @param root absolute, every link resolved.
 */
export function* walkTree(root: string, options: TreeWalkOptions): Steps<TreeSighting> {
  return yield* new Walk(root, options).run(['']);
}

/**
 * The tree as it is when only what these paths name may have changed since an earlier walk with the same options: a
 * file or link itself, a directory with all that is below it. Where nothing differs its maps are the earlier ones,
 * and when nothing differs at all it is the earlier walk itself.
 * @param paths absolute; what is not below the root is left aside.
 */
export function* rewalkTree(
  previous: TreeWalk,
  paths: Iterable<string>,
  options: TreeWalkOptions,
): Steps<TreeSighting> {
  const { root, complete } = previous;
  if (complete) {
    const keys = [...new Set(paths)].flatMap((path) => keyBelow(root, path) ?? []);
    const seen = yield* new Walk(root, options, previous).run(keys.sort());
    if (seen.kind !== 'tree' || seen.complete) return seen;
  }
  // What an incomplete walk left out is not known.
  return yield* walkTree(root, options);
}

function keyBelow(root: string, path: string): string | undefined {
  if (path === root) return '';
  const above = root.endsWith('/') ? root : `${root}/`;
  return path.startsWith(above) ? path.slice(above.length) : undefined;
}

/** A directory to be listed. */
interface Found {
  readonly key: string;
  readonly path: string;
  readonly stat: BigIntStats;
}

/** Ends a walk early. */
class EarlyEnd extends Error {
  readonly sighting: NoTree | UnfamiliarTree | 'full';

  constructor(sighting: NoTree | UnfamiliarTree | 'full') {
    super('The walk has ended');
    this.sighting = sighting;
  }
}

class Walk {
  readonly #root: string;
  readonly #options: TreeWalkOptions;
  readonly #previous: TreeWalk | undefined;
  readonly #own: PartDraft;
  readonly #linked = new PartDraft();
  readonly #mounts: Map<string, string>;
  /** The directories that have been visited, by identity; needed where links are followed. */
  #visited: Set<string> | undefined;

  constructor(root: string, options: TreeWalkOptions, previous?: TreeWalk) {
    this.#root = root;
    this.#options = options;
    this.#previous = previous;
    this.#own = new PartDraft(previous?.own);
    this.#mounts = new Map(previous?.mounts);
  }

  *run(keys: readonly string[]): Steps<TreeSighting> {
    try {
      const done = new Set<string>();
      for (const key of keys) yield* this.#visitNamed(key, done);
      yield* this.#visitLinks();
      return this.#result(true);
    } catch (error) {
      if (!(error instanceof EarlyEnd)) throw error;
      return error.sighting === 'full' ? this.#result(false) : error.sighting;
    }
  }

  /** Visits what a key names, or the first place on the way there that is not known as a directory. */
  *#visitNamed(key: string, done: Set<string>): Steps<void> {
    if (done.has('')) return;
    for (const place of placesOnTheWay(key)) {
      if (done.has(place) || (place !== '' && this.#options.ignore.matches(place))) return;
      if (place !== key && this.#own.directories.map.has(place)) continue;
      done.add(place);
      yield* this.#visit(place);
      this.#own.sweep(place);
      return;
    }
  }

  *#visit(key: string): Steps<void> {
    const path = key === '' ? this.#root : within(this.#root, key);
    const stat = yield* this.#stat(key, path);
    if (!stat) return;
    if (key === '' && !stat.isDirectory()) throw this.#noTree('ENOTDIR');
    const above = key === '' ? undefined : this.#own.directories.map.get(parentOf(key));
    const found: Found[] = [];
    this.#sort({ key, path, stat }, above?.identity ?? inodeOf(stat), this.#own, found);
    yield* this.#list(found, this.#own);
  }

  /** Lists directories, and those in them. */
  *#list(found: Found[], part: PartDraft): Steps<void> {
    for (let next = found.pop(); next; next = found.pop()) {
      const { key, path, stat } = next;
      const identity = inodeOf(stat);

      if (this.#visited?.has(identity)) continue;
      this.#visited?.add(identity);
      const names = yield* this.#namesIn(next, part);
      if (!names) continue;
      part.directories.set(key, { path, identity, linked: part === this.#linked });
      for (const name of names) {
        const inner = key === '' ? name : `${key}/${name}`;
        if (this.#options.ignore.matches(inner)) continue;
        const place = within(path, name);
        const entry = yield* this.#stat(inner, place);
        if (entry) this.#sort({ key: inner, path: place, stat: entry }, identity, part, found);
      }
    }
  }

  *#namesIn({ key, path }: Found, part: PartDraft): Steps<string[] | undefined> {
    try {
      return yield* call('readdir', path);
    } catch (error) {
      const errno = errnoOf(error);
      if (errno === undefined) throw error;
      if (key === '') throw this.#noTree(errno);
      if (!hasMoved(error)) part.unreadable.set(key, errno);
      return undefined;
    }
  }

  /** @param above the identity of the directory that holds it. */
  #sort(entry: Found, above: string, part: PartDraft, found: Found[]): void {
    const { key, path, stat } = entry;
    if (stat.isDirectory()) {
      if (!above.startsWith(`${stat.dev}:`)) this.#enter(inodeOf(stat), path);
      found.push(entry);
    } else if (stat.isSymbolicLink()) part.links.set(key, path);
    else if (stat.isFile()) this.#add(entry, '', part);
  }

  /** Follows all links, and then those found on the way. */
  *#visitLinks(): Steps<void> {
    let links = [...this.#own.links.map];
    for (let done = 0; links.length > 0;) {
      // The first to reach a directory has it, so there must be an order.
      for (const [key, path] of links.sort(([a], [b]) => (a < b ? -1 : 1))) yield* this.#follow(key, path);
      links = [...this.#linked.links.map].slice(done);
      done += links.length;
    }
  }

  *#follow(key: string, path: string): Steps<void> {
    const { followLinks, familiar } = this.#options;
    const { end, mounts, links } = yield* resolveChain(path, familiar);
    if (end.kind === 'unfamiliar') throw new EarlyEnd({ kind: 'unfamiliar', root: this.#root, path });
    if (end.kind !== 'found') return;
    for (const [identity, place] of mounts) this.#enter(identity, place);
    const found = { key, path: end.path, stat: end.stat };
    if (end.stat.isFile()) this.#add(found, links, this.#linked);
    if (!end.stat.isDirectory() || !followLinks) return;
    this.#visited ??= new Set([...this.#own.directories.map.values()].map(({ identity }) => identity));
    yield* this.#list([found], this.#linked);
  }

  #add({ key, path, stat }: Found, links: string, part: PartDraft): void {
    const count = this.#own.files.map.size + this.#linked.files.map.size;
    if (count >= this.#options.maxFiles && !part.files.map.has(key)) throw new EarlyEnd('full');
    part.files.set(key, {
      kind: links === '' ? 'file' : 'link',
      path,
      links,
      inode: inodeOf(stat),
      identity: `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`,
      signature: signatureOf(stat),
      finished: stat.ctimeNs > stat.mtimeNs,
      mode: Number(stat.mode & 0o7777n),
      size: Number(stat.size),
    });
  }

  #enter(identity: string, path: string): void {
    const { familiar } = this.#options;
    if (familiar && !familiar.has(identity))
      throw new EarlyEnd({ kind: 'unfamiliar', root: this.#root, path });
    this.#mounts.set(identity, path);
  }

  *#stat(key: string, path: string): Steps<BigIntStats | undefined> {
    try {
      return yield* call('lstat', path);
    } catch (error) {
      const errno = errnoOf(error);
      if (errno === undefined) throw error;
      if (key === '') throw this.#noTree(errno);
      return undefined;
    }
  }

  #noTree(errno: string): EarlyEnd {
    const kind = errno === 'ENOENT' || errno === 'ESTALE' ? 'missing' : 'unreadable';
    return new EarlyEnd({ kind: errno === 'ENOTDIR' ? 'not-directory' : kind, root: this.#root, errno });
  }

  #result(complete: boolean): TreeWalk {
    const own = {
      files: this.#own.files.map,
      directories: this.#own.directories.map,
      unreadable: this.#own.unreadable.map,
      links: this.#own.links.map,
    };
    const before = this.#previous;
    const parts = joinParts(own, this.#linked, before);
    const unchanged =
      before?.complete === complete &&
      before.own.links === own.links &&
      before.files === parts.files &&
      before.directories === parts.directories &&
      before.unreadable === parts.unreadable;
    if (unchanged) return before;
    return { kind: 'tree', root: this.#root, complete, mounts: this.#mounts, own, ...parts };
  }
}

function within(directory: string, name: string): string {
  return directory === '/' ? `/${name}` : `${directory}/${name}`;
}

function parentOf(key: string): string {
  return key.slice(0, Math.max(0, key.lastIndexOf('/')));
}

/** `a/b/c` → `a`, `a/b`, `a/b/c`. */
function* placesOnTheWay(key: string): Iterable<string> {
  for (let end = key.indexOf('/'); end >= 0; end = key.indexOf('/', end + 1)) yield key.slice(0, end);
  yield key;
}
