/**
 * A directory with all that is below it.
 *
 * | what led to the check                      | what is checked                                           |
 * |-------------------------------------------|-----------------------------------------------------------|
 * | hints that say where                      | these places, and what they led to at the check before     |
 * | anything else, or another directory there | everything                                                |
 */
import { basename, dirname } from 'node:path';

import { within } from '../absolute-path.js';
import { errnoOf } from '../../core/errno.js';
import { TargetError } from '../../core/errors.js';
import { identityOf, mergeDirectories, readingError, resolveChain, type LinkChain } from '../link-chain.js';
import { globsIn, PathGlobs, type IgnorePattern } from '../path-globs.js';
import type { WatchedDirectory } from '../../core/watch-backend.js';
import type { AllowedMounts, Found, Observation, Target } from '../observation.js';
import { SetSnapshot } from '../snapshot.js';
import type { Effects } from '../effects.js';
import {
  keyBelow,
  rewalkTree,
  walkDirectories,
  walkTree,
  type TreeObservation,
  type TreeWalk,
} from '../tree-walk.js';
import { isRevisionName } from '../volume-layout.js';
import { TreeFiles, type TreeReading } from './tree-files.js';

/** How a tree is read. */
export interface TreeOptions extends TreeReading {
  readonly ignore: readonly IgnorePattern[];
  readonly followLinks: boolean;
}

/** How often a tree whose root moves during a walk is walked again. */
const MAX_WALKS = 20;

/** With more paths than this a complete walk is faster than checking each. */
const MAX_PLACES = 1_000;

/** Everything, or only these paths. */
type Touched = Set<string> | 'all';

/** A tree. It remembers the last walk, so that a hint with a path does not cause a complete walk. */
export class TreeTarget implements Target {
  readonly path: string;
  readonly #options: TreeOptions;
  readonly #globs: PathGlobs;
  #touched: Touched = 'all';
  #walk: TreeWalk | undefined;
  #last: Found | undefined;
  /** Identifies the root and the links by which it was reached. */
  #place = '';
  readonly #files: TreeFiles;
  #directories:
    | { readonly key: string; readonly walk: TreeWalk['directories']; readonly list: WatchedDirectory[] }
    | undefined;

  /** @param path absolute. */
  constructor(path: string, options: TreeOptions) {
    this.path = path;
    this.#options = options;
    this.#globs = new PathGlobs(options.ignore);
    this.#files = new TreeFiles(path, options);
  }

  /** Notes that something may have happened at this path, or anywhere. */
  touch(path?: string): void {
    if (path === undefined || this.#touched === 'all' || this.#touched.size >= MAX_PLACES)
      this.#touched = 'all';
    else this.#touched.add(path);
  }

  *observe(known?: Found, allowedMounts?: AllowedMounts): Effects<Observation> {
    let chain = yield* resolveChain(this.path, allowedMounts);
    for (let walks = 0; walks < MAX_WALKS; walks += 1) {
      const { end } = chain;
      if (end.kind === 'missing') return this.#lost({ kind: 'missing', chain });
      if (end.kind !== 'found') return this.#lost({ ...end, chain });
      const touched = this.#take(`${chain.links} ${end.path} ${identityOf(end.stat)}`);
      const seen = yield* this.#walkAt(end.path, touched, allowedMounts);
      if (seen.kind === 'disallowed') return this.#lost({ kind: 'disallowed', chain });
      if (seen.kind === 'tree') return yield* this.#foundOrUnreadable(chain, seen, touched, known);
      if (seen.kind !== 'missing') return this.#lost({ kind: 'unreadable', chain, error: errorOf(seen) });
      this.#touched = 'all';
      chain = yield* resolveChain(this.path, allowedMounts);
    }
    return this.#lost({ kind: 'unstable', chain });
  }

  *observeSwap(): Effects<undefined> {
    // A swap of a volume in the tree is one of many things that may have happened.
  }

  *isUnchanged(): Effects<boolean> {
    // That would take a complete walk, which is a check.
    return false;
  }

  /** The chain of the root with the directories of the tree, without its files. */
  *resolve(allowedMounts?: AllowedMounts): Effects<LinkChain> {
    const chain = yield* resolveChain(this.path, allowedMounts);
    this.#touched = 'all';
    if (chain.end.kind !== 'found' || !chain.end.stat.isDirectory()) return chain;
    const seen = yield* walkDirectories(chain.end.path, this.#walkOptions(allowedMounts));
    return seen.kind === 'tree' ? this.#chainOf(chain, seen) : chain;
  }

  #take(place: string): Touched {
    const touched = this.#walk && place === this.#place ? this.#touched : 'all';
    this.#place = place;
    this.#touched = new Set();
    return touched;
  }

  #lost(observation: Observation): Observation {
    this.#touched = 'all';
    this.#walk = undefined;
    this.#last = undefined;
    return observation;
  }

  #walkOptions(allowedMounts: AllowedMounts): Parameters<typeof walkTree>[1] {
    const { followLinks } = this.#options;
    return { ignore: this.#globs, followLinks, allowedMounts };
  }

  *#walkAt(root: string, touched: Touched, allowedMounts: AllowedMounts): Effects<TreeObservation> {
    const options = this.#walkOptions(allowedMounts);
    if (touched !== 'all' && this.#walk) return yield* rewalkTree(this.#walk, touched, options);
    // Compared with the walk before, so that what is equal remains the same object.
    const before = this.#walk?.root === root ? this.#walk : undefined;
    return before ? yield* rewalkTree(before, [root], options) : yield* walkTree(root, options);
  }

  *#foundOrUnreadable(
    chain: LinkChain,
    walk: TreeWalk,
    touched: Touched,
    known: Found | undefined,
  ): Effects<Observation> {
    try {
      return yield* this.#found(chain, walk, touched, known);
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
      const path = (error as NodeJS.ErrnoException).path ?? walk.root;
      return this.#lost({ kind: 'unreadable', chain, error: readingError(path, error) });
    }
  }

  *#found(
    chain: LinkChain,
    walk: TreeWalk,
    touched: Touched,
    known: Found | undefined,
  ): Effects<Observation> {
    this.#walk = walk;
    const restless = yield* this.#files.take(walk.files, keysAt(touched, walk, known));
    // They are checked again when they are due to be reported.
    for (const { path } of restless) this.touch(path);
    const { seen: files, states, version, limited } = this.#files;
    const placed = this.#chainOf(chain, walk);
    const partial = touched !== 'all';
    const unreadable = unreadablePart(walk);
    if (this.#last?.files === files) return { ...this.#last, chain: placed, partial, unreadable };
    this.#last = {
      kind: 'found',
      chain: placed,
      snapshot: new SetSnapshot({
        kind: 'tree',
        path: this.path,
        realPath: walk.root,
        revision: undefined,
        files: states,
      }),
      files,
      directories: new Map(),
      signature: String(version),
      partial,
      unreadable,
      limited,
    };
    return this.#last;
  }

  /** The chain of the root with the directories of the tree: the same array while nothing differs. */
  #chainOf(chain: LinkChain, walk: TreeWalk): LinkChain {
    const root = chain.directories.map((directory) => onlyRoot(directory, walk.root, chain));
    const above = mergeDirectories([{ directories: root }, { directories: walk.consulted }]);
    const key = JSON.stringify(
      above.map(({ path, identity, entries }) => [path, identity, entries && [...entries]]),
    );
    if (this.#directories?.key !== key || this.#directories.walk !== walk.directories) {
      const tree = { root: walk.root, ignore: globsIn(this.#options.ignore) };
      // Revisions do not change any more, and each would be another watch with every swap.
      const changing = [...walk.directories.values()].filter(
        ({ path, linked }) => !linked || !path.split('/').some(isRevisionName),
      );
      const below = changing.map(({ path, identity, linked }) =>
        linked ? { path, identity } : { path, identity, tree },
      );
      const paths = new Set(below.map(({ path }) => path));
      const list = [...above.filter(({ path }) => !paths.has(path)), ...below];
      this.#directories = { key, walk: walk.directories, list };
    }
    const mounts = new Map([...chain.mounts, ...walk.mounts]);
    return { ...chain, directories: this.#directories.list, mounts };
  }
}

/** What became unreadable. What could never be read is left out of the tree. */
function unreadablePart({ root, files, unreadable }: TreeWalk): TargetError | undefined {
  for (const [key, errno] of unreadable) {
    const isKept = files.has(key) || [...files.keys()].some((file) => file.startsWith(`${key}/`));
    if (isKept) return readingError(within(root, key), Object.assign(new Error(errno), { code: errno }));
  }
  return undefined;
}

/** Nothing else in the directory that holds the root matters, unless a link on the way is in it. */
function onlyRoot(directory: WatchedDirectory, root: string, { hops }: LinkChain): WatchedDirectory {
  const { path, identity } = directory;
  const holdsLink = [...hops.keys()].some((link) => dirname(link) === path);
  return path === dirname(root) && !holdsLink
    ? { path, identity, entries: new Set([basename(root)]) }
    : directory;
}

/** The keys of the touched files. */
function keysAt(
  touched: Touched,
  { root, files, linked }: TreeWalk,
  known: Found | undefined,
): Iterable<string> {
  if (touched === 'all') return known ? [] : files.keys();
  const own = [...touched].map((path) => keyBelow(root, path) ?? '').filter((key) => files.has(key));
  const behindLinks = [...linked.files].filter(([, { path }]) => touched.has(path)).map(([key]) => key);
  return [...own, ...behindLinks];
}

function errorOf(seen: Exclude<TreeObservation, { kind: 'tree' | 'disallowed' }>): TargetError {
  const { root, errno } = seen;
  if (seen.kind === 'not-directory') {
    const message = `Cannot read "${root}": it is not a directory, but a tree is watched`;
    return new TargetError('ERR_TARGET_NOT_DIRECTORY', root, message);
  }
  return readingError(root, Object.assign(new Error(errno), { code: errno }));
}
