/** The directories that are watched for a tree: those on the way to its root, and those below it. */
import { basename, dirname } from 'node:path';

import type { WatchedDirectory } from '../../core/watch-backend.js';
import { hopsOf, mergeDirectories, type ResolvedChain } from '../link-chain.js';
import type { TreeWalk } from '../tree-part.js';
import { isRevisionName } from '../volume-layout.js';

/** Remembers the directories of the last walk: a backend recognizes the same array, and has nothing to do. */
export class TreeDirectories {
  readonly #ignore: readonly string[];
  #last:
    | { readonly key: string; readonly walk: TreeWalk['directories']; readonly list: WatchedDirectory[] }
    | undefined;

  /** @param ignore globs of what is not watched, relative to the root. */
  constructor(ignore: readonly string[]) {
    this.#ignore = ignore;
  }

  /** The chain of the root with the directories of the tree: the same array while nothing differs. */
  chainOf(chain: ResolvedChain, walk: TreeWalk): ResolvedChain {
    const onTheWay = chain.directories.map((directory) => onlyRoot(directory, walk.root, chain));
    const above = mergeDirectories([{ directories: onTheWay }, { directories: walk.consulted }]);
    const key = JSON.stringify(
      above.map(({ path, identity, entries }) => [path, identity, entries && [...entries]]),
    );
    if (this.#last?.key !== key || this.#last.walk !== walk.directories) {
      this.#last = { key, walk: walk.directories, list: this.#listOf(above, walk) };
    }
    const mounts = new Map([...chain.mounts, ...walk.mounts]);
    return { ...chain, directories: this.#last.list, mounts };
  }

  #listOf(above: readonly WatchedDirectory[], { root, directories }: TreeWalk): WatchedDirectory[] {
    const tree = { root, ignore: this.#ignore };
    // Revisions do not change any more, and each would be another watch with every swap.
    const changing = [...directories.values()].filter(
      ({ path, linked }) => !linked || !path.split('/').some(isRevisionName),
    );
    const below = changing.map(({ path, identity, linked }) =>
      linked ? { path, identity } : { path, identity, tree },
    );
    const paths = new Set(below.map(({ path }) => path));
    return [...above.filter(({ path }) => !paths.has(path)), ...below];
  }
}

/** Nothing else in the directory that holds the root matters, unless a link on the way is in it. */
function onlyRoot(directory: WatchedDirectory, root: string, chain: ResolvedChain): WatchedDirectory {
  const { path, identity } = directory;
  const holdsLink = [...hopsOf(chain).keys()].some((link) => dirname(link) === path);
  return path === dirname(root) && !holdsLink
    ? { path, identity, entries: new Set([basename(root)]) }
    : directory;
}
