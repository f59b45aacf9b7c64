/**
 * What is below a directory at one instant: identities, no contents.
 *
 * A walk has two parts. The first visits what is there under its own path; a partial walk repeats only the given
 * places of it. The second visits what links lead to. It is always repeated, since no hint reports what happens
 * there, and comes second, so that each directory is visited once, under its own path if it has one in the tree. So
 * links cause neither cycles nor duplicates, and the result does not depend on the order of events.
 *
 * A volume in the tree shows its keys: names that begin with two dots are left out, also between two revisions.
 * Below a directory that can no longer be listed the files remain those that were last seen there.
 */
import type { BigIntStats, Dirent } from 'node:fs';
import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

import { within } from './absolute-path.js';
import { errnoOf, hasMoved, isExhausted } from '../core/errno.js';
import { identityOf, signatureOf } from './file-identity.js';
import { mergeDirectories, resolveChain, type LinkChain } from './link-chain.js';
import { VERIFIED_AT_ONCE } from './observation.js';
import { keysThatDiffer } from './persistent-map.js';
import { call, PAUSE, type Effects } from './effects.js';
import { listDirectory } from './list-directory.js';
import { Draft, Subtrees } from './tree-draft.js';
import { keyBelow, parentOf, placesOnTheWay, shownPlace } from './tree-key.js';
import {
  joinParts,
  PartDraft,
  treeFileAt,
  type DisallowedMount,
  type NoTree,
  type OwnPart,
  type TreeObservation,
  type TreeWalk,
} from './tree-part.js';
import type { TreeScope } from './tree-scope.js';
import { DATA_LINK, isRevisionName, isUserVisible } from './volume-layout.js';

/** Options of a walk. */
interface TreeWalkOptions {
  readonly scope: TreeScope;
  /** Whether links to directories are followed; links to files, and those of a volume, always are. */
  readonly followLinks: boolean;
  /** File systems that may be entered, see `resolveChain`; undefined means all. */
  readonly allowedMounts?: ReadonlyMap<string, unknown> | undefined;
}

/**
 * Walks a complete tree. What vanishes meanwhile, or cannot be read, is left out.
 * @param root absolute, every link resolved.
 */
export function* walkTree(root: string, options: TreeWalkOptions): Effects<TreeObservation> {
  return yield* new Walk(root, options).run(['']);
}

/** The same without files: the directories to watch, at a fraction of the cost. */
export function* walkDirectories(root: string, options: TreeWalkOptions): Effects<TreeObservation> {
  return yield* new Walk(root, { ...options, skipFiles: true }).run(['']);
}

/**
 * Walks the tree again where only these places may have changed since an earlier walk with the same options. Maps
 * without differences are those of the earlier walk, and without any difference the result is the earlier walk itself.
 * @param paths absolute: each is a file or link, or a directory with everything below it. Those that are not below
 * the root are ignored.
 * @param relisted the keys of directories whose entries may be others. Of what is below them, the directories that
 * differ are visited, and the files, but only the new ones in a directory of more than `VERIFIED_AT_ONCE` entries.
 */
export function* rewalkTree(
  previous: TreeWalk,
  paths: Iterable<string>,
  options: TreeWalkOptions,
  relisted: Iterable<string> = [],
): Effects<TreeObservation> {
  const { root } = previous;
  const keys = [...new Set(paths)].flatMap((path) => keyBelow(root, path) ?? []);
  return yield* new Walk(root, options, previous).run(keys.sort(), [...relisted].sort());
}

/** An entry of a directory. */
interface Entry {
  readonly key: string;
  readonly path: string;
  readonly stat: BigIntStats;
}

/** Ends a walk early. */
class EarlyEnd extends Error {
  readonly observation: NoTree | DisallowedMount;

  constructor(observation: NoTree | DisallowedMount) {
    super('The walk has ended');
    this.observation = observation;
  }
}

class Walk {
  readonly #root: string;
  readonly #options: TreeWalkOptions & { readonly skipFiles?: boolean };
  readonly #previous: TreeWalk | undefined;
  readonly #own: PartDraft;
  readonly #linked: PartDraft;
  readonly #links: Draft<string>;
  /** The links in directories that links led to. */
  readonly #linkedLinks: [key: string, path: string][] = [];
  /** The identities of the directories of the own part at which a file system begins. */
  readonly #mounts: Draft<string>;
  readonly #listed: Draft<string>;
  /** The directories that were found as they were when they were last listed, and not entered. */
  readonly #unchanged: string[] = [];
  /** The paths of the directories that were entered through links, by identity. */
  readonly #linkedMounts = new Map<string, string>();
  /** The chains of the links that lead to files. */
  readonly #chains: LinkChain[] = [];
  /** The directories that were visited, by identity; needed if links are followed. */
  #visited: Set<string> | undefined;

  constructor(
    root: string,
    options: TreeWalkOptions & { readonly skipFiles?: boolean },
    previous?: TreeWalk,
  ) {
    this.#root = root;
    this.#options = options;
    this.#previous = previous;
    this.#own = new PartDraft(previous?.own);
    this.#linked = new PartDraft(previous?.linked);
    this.#links = new Draft<string>(Object.is, previous?.own.links);
    this.#mounts = new Draft<string>(Object.is, previous?.own.mounts);
    this.#listed = new Draft<string>(Object.is, previous?.own.listed);
  }

  /** @param relisted see `rewalkTree`. */
  *run(keys: readonly string[], relisted: readonly string[] = []): Effects<TreeObservation> {
    try {
      const [done, listedAgain] = [new Set<string>(), new Set<string>()];
      for (const key of keys) yield* this.#visitNamed(shownPlace(key), done, false);
      for (const key of relisted) yield* this.#visitNamed(key, listedAgain, true);
      yield* this.#sweep(done, new Set());
      yield* this.#sweep(listedAgain, new Set(this.#unchanged));
      const own = {
        ...(yield* this.#own.part()),
        links: yield* this.#links.map(),
        mounts: yield* this.#mounts.map(),
        listed: yield* this.#listed.map(),
      };
      yield* this.#visitLinks(own);
      return yield* this.#result(own);
    } catch (error) {
      if (error instanceof EarlyEnd) return error.observation;
      throw error;
    }
  }

  /** Visits what a key names, or the first component of it that is not known as a directory. */
  *#visitNamed(key: string, done: Set<string>, isShallow: boolean): Effects<void> {
    if (done.has('')) return;
    if (this.#options.scope.isRemoved(key)) {
      // It is swept with everything below, even below a directory that can no longer be listed.
      done.add(key);
      return;
    }
    for (const place of placesOnTheWay(key)) {
      if (done.has(place) || (place !== '' && this.#options.scope.leavesOut(place))) return;
      if (place !== key && this.#own.directories.get(place)) continue;
      done.add(place);
      yield* this.#visit(place, isShallow);
      return;
    }
  }

  /**
   * Removes what was not found again at these paths: once for all of them, since it takes a pass over everything.
   * @param unchanged the directories that were not entered.
   */
  *#sweep(done: ReadonlySet<string>, unchanged: ReadonlySet<string>): Effects<void> {
    if (done.size === 0) return;
    const { scope } = this.#options;
    // Nothing was known below what was not a directory.
    const below = new Subtrees(
      [...done].filter((place) => scope.isRemoved(place) || this.#previous?.own.directories.has(place)),
    );
    const insideUnchanged = new Subtrees(unchanged);
    const isKept = (path: string): boolean => unchanged.has(path) || insideUnchanged.has(path);
    for (const draft of [this.#links, this.#mounts, this.#listed]) yield* draft.sweep(done, below, isKept);
    yield* this.#own.sweep(done, below, scope, isKept);
  }

  /** @param isShallow see `#list`. */
  *#visit(key: string, isShallow: boolean): Effects<void> {
    const path = key === '' ? this.#root : within(this.#root, key);
    const stat = yield* this.#stat(key, path, this.#own);
    if (!stat) return;
    if (key === '' && !stat.isDirectory()) throw this.#noTree('ENOTDIR');
    if (stat.isSymbolicLink()) this.#links.set(key, path);
    const above = key === '' ? undefined : this.#own.directories.get(parentOf(key));
    const directories: Entry[] = [];
    this.#sort({ key, path, stat }, above?.identity ?? identityOf(stat), this.#own, directories);
    yield* this.#list(directories, this.#own, isShallow);
  }

  /**
   * Lists directories, and those in them.
   * @param isShallow directories in them that have not changed are not entered, and where there are many entries the
   * files that are known by name are not visited.
   */
  *#list(directories: Entry[], part: PartDraft, isShallow = false): Effects<void> {
    for (let next = directories.pop(); next; next = directories.pop()) {
      const { key, path, stat } = next;
      const identity = identityOf(stat);
      if (this.#visited?.has(identity)) continue;
      this.#visited?.add(identity);
      const entries = yield* this.#entriesOf(next, part);
      if (!entries) continue;
      const isVolume = this.#isVolume(key, identity, entries, part);
      part.directories.set(key, { path, identity, linked: part === this.#linked, isVolume });
      if (part === this.#own) this.#listed.set(key, signatureOf(stat));
      const isByName = isShallow && entries.length > VERIFIED_AT_ONCE;
      for (const entry of entries) {
        if (isVolume && !isUserVisible(entry.name)) continue;
        const inner = key === '' ? entry.name : `${key}/${entry.name}`;
        if (this.#options.scope.leavesOut(inner)) continue;
        const place = within(path, entry.name);
        const known = isByName && entry.isFile() ? part.files.get(inner) : undefined;
        if (known && this.#mounts.get(inner) === undefined) {
          part.files.keep(inner);
          yield PAUSE;
          continue;
        }
        if (entry.isSymbolicLink()) this.#addLink(inner, place, part);
        if (!entry.isDirectory() && !(entry.isFile() && !this.#options.skipFiles)) continue;
        const found = yield* this.#stat(inner, place, part);
        if (!found) continue;
        if (isShallow && this.#isAsListed(inner, found)) this.#unchanged.push(inner);
        else this.#sort({ key: inner, path: place, stat: found }, identity, part, directories);
      }
    }
  }

  #isAsListed(key: string, stat: BigIntStats): boolean {
    return stat.isDirectory() && this.#previous?.own.listed.get(key) === signatureOf(stat);
  }

  /** Between two revisions a volume has no `..data`, but it still has names that are not for its users. */
  #isVolume(key: string, identity: string, entries: readonly Dirent[], part: PartDraft): boolean {
    if (entries.some(({ name }) => name === DATA_LINK)) return entries.some(isDataLink);
    const known = part.directories.get(key);
    const wasVolume = known?.isVolume === true && known.identity === identity;
    return entries.some((entry) => (wasVolume && !isUserVisible(entry.name)) || isRevision(entry));
  }

  *#entriesOf({ key, path, stat }: Entry, part: PartDraft): Effects<Dirent[] | undefined> {
    try {
      return yield* listDirectory(path, stat);
    } catch (error) {
      const errno = errnoOf(error);
      if (errno === undefined) throw error;
      if (key === '') throw this.#noTree(errno);
      if (isExhausted(error)) throw new EarlyEnd({ kind: 'unreadable', root: path, errno });
      if (!hasMoved(error)) part.unreadable.set(key, errno);
      return undefined;
    }
  }

  /** @param above the identity of the parent directory. */
  #sort(entry: Entry, above: string, part: PartDraft, directories: Entry[]): void {
    const { key, path, stat } = entry;
    if (!stat.isDirectory() && !stat.isFile()) return;
    if (!above.startsWith(`${stat.dev}:`)) {
      const identity = identityOf(stat);
      this.#assertAllowed(identity, path);
      if (part === this.#own) this.#mounts.set(key, identity);
      else this.#linkedMounts.set(identity, path);
    }
    if (stat.isDirectory()) directories.push(entry);
    else this.#addFile(entry, '', part);
  }

  /** Follows all links, and then those found on the way. */
  *#visitLinks({ links, directories, unreadable }: OwnPart): Effects<void> {
    const waiting: [key: string, path: string][] = [...links];
    if (waiting.length > 0)
      this.#visited = new Set([...directories.values()].map(({ identity }) => identity));
    while (waiting.length > 0) {
      // The first link to a directory determines its path, so there must be an order.
      waiting.sort(([a], [b]) => (a < b ? -1 : 1));
      for (const [key, path] of waiting.splice(0)) yield* this.#follow(key, path, directories);
      waiting.push(...this.#linkedLinks.splice(0));
    }
    yield* this.#linked.sweep([], new Subtrees(['']), this.#options.scope, () => false, unreadable);
  }

  /** @param directories those of the own part, in which each file is watched. */
  *#follow(key: string, path: string, directories: OwnPart['directories']): Effects<void> {
    const { followLinks, allowedMounts, skipFiles } = this.#options;
    const chain = yield* resolveChain(path, allowedMounts);
    const { end, mounts, links, hops } = chain;
    if (end.kind === 'disallowed') throw new EarlyEnd({ kind: 'disallowed', root: this.#root, path });
    if (end.kind !== 'found') return;
    for (const [identity, place] of mounts) {
      this.#assertAllowed(identity, place);
      this.#linkedMounts.set(identity, place);
    }
    const found = { key, path: end.path, stat: end.stat };
    if (end.stat.isFile()) {
      const parent = keyBelow(this.#root, dirname(end.path));
      if (parent === undefined || !directories.has(parent)) this.#chains.push(chain);
      if (!skipFiles) this.#addFile(found, links, this.#linked);
    }
    // The links in a volume represent its contents; one that leads out of the volume is an ordinary link.
    const isKey =
      hops.get(path)?.startsWith(`${DATA_LINK}/`) === true && keyBelow(dirname(path), end.path) !== undefined;
    if (end.stat.isDirectory() && (followLinks || isKey)) yield* this.#list([found], this.#linked);
  }

  #addLink(key: string, path: string, part: PartDraft): void {
    if (part === this.#own) this.#links.set(key, path);
    else this.#linkedLinks.push([key, path]);
  }

  #addFile({ key, path, stat }: Entry, links: string, part: PartDraft): void {
    if (this.#options.scope.includes(key))
      part.files.set(key, treeFileAt(path, links, stat, part.files.get(key)));
  }

  #assertAllowed(identity: string, path: string): void {
    const { allowedMounts } = this.#options;
    if (allowedMounts && !allowedMounts.has(identity))
      throw new EarlyEnd({ kind: 'disallowed', root: this.#root, path });
  }

  *#stat(key: string, path: string, part: PartDraft): Effects<BigIntStats | undefined> {
    try {
      return yield* call('lstat', path);
    } catch (error) {
      const errno = errnoOf(error);
      if (errno === undefined) throw error;
      if (key === '') throw this.#noTree(errno);
      if (!hasMoved(error)) part.unreadable.set(key, errno);
      return undefined;
    }
  }

  #noTree(errno: string): EarlyEnd {
    const kind = errno === 'ENOENT' || errno === 'ESTALE' ? 'missing' : 'unreadable';
    return new EarlyEnd({ kind: errno === 'ENOTDIR' ? 'not-directory' : kind, root: this.#root, errno });
  }

  *#result(own: OwnPart): Effects<TreeWalk> {
    const before = this.#previous;
    const parts = yield* joinParts(own, yield* this.#linked.part(), before);
    const mounts = new Map(this.#linkedMounts);
    for (const [key, identity] of own.mounts) mounts.set(identity, within(this.#root, key));
    const unchanged =
      before?.own.links === own.links &&
      before.own.mounts === own.mounts &&
      before.own.listed === own.listed &&
      [...keysThatDiffer(before.mounts, mounts)].length === 0 &&
      before.files === parts.files &&
      before.directories === parts.directories &&
      before.unreadable === parts.unreadable;
    const consulted = mergeDirectories(this.#chains);
    if (unchanged && isDeepStrictEqual(before.consulted, consulted)) return before;
    return { kind: 'tree', root: this.#root, mounts, consulted, ...parts };
  }
}

function isDataLink(entry: Dirent): boolean {
  return entry.name === DATA_LINK && entry.isSymbolicLink();
}

function isRevision(entry: Dirent): boolean {
  return isRevisionName(entry.name) && entry.isDirectory();
}
