import { dirname } from 'node:path';

import type { WatchedDirectory } from '../core/watch-backend.js';
import { DirectoryWalk, type Entry, type TreeWalkOptions } from './directory-walk.js';
import type { Effects } from './effects.js';
import { hopsOf, mergeDirectories, type ResolvedChain } from './link-chain.js';
import { resolveChain } from './resolve-chain.js';
import { Subtrees } from './tree-draft.js';
import { keyBelow } from './tree-key.js';
import { PersistentMap } from './persistent-map.js';
import type { OwnPart, TreePart } from './tree-part.js';
import { DATA_LINK } from './volume-layout.js';

/** What the links of a tree lead to. */
interface Linked {
  readonly part: TreePart;
  /** The paths of the directories at which a file system begins, by identity. */
  readonly mounts: ReadonlyMap<string, string>;
  /** The directories on the way to the files that links lead to, outside of the tree. */
  readonly consulted: readonly WatchedDirectory[];
}

const NOTHING: Linked = {
  part: {
    files: PersistentMap.empty(),
    directories: PersistentMap.empty(),
    unreadable: PersistentMap.empty(),
  },
  mounts: new Map(),
  consulted: [],
};

/**
 * Visits what the links of a tree lead to.
 * @param own what was found under its own path.
 * @param previous what links led to before; files that can no longer be reached may be kept.
 */
export function* walkLinks(
  root: string,
  options: TreeWalkOptions,
  own: OwnPart,
  previous: TreePart = NOTHING.part,
): Effects<Linked> {
  // Most trees have no links, and this is part of each check.
  if (own.links.size === 0 && previous === NOTHING.part) return NOTHING;
  return yield* new LinkedWalk(root, options, own, previous).run();
}

/** A link: its path relative to the root, and the absolute one. */
type Link = readonly [key: string, path: string];

/**
 * Visits what the links of a tree lead to, and the links found on the way. A directory that has a path of its own in
 * the tree, or was visited through another link, is not visited again.
 */
class LinkedWalk extends DirectoryWalk {
  readonly #own: OwnPart;
  /** The directories that were visited, by identity. */
  readonly #visited: Set<string>;
  #waiting: Link[];
  readonly #mounts = new Map<string, string>();
  /** The chains of the links that lead to files in directories that are not in the tree. */
  readonly #chains: ResolvedChain[] = [];

  /** @param own what was found under its own path. */
  constructor(root: string, options: TreeWalkOptions, own: OwnPart, previous: TreePart) {
    super(root, options, true, previous);
    this.#own = own;
    this.#waiting = [...own.links];
    const directories = this.#waiting.length > 0 ? own.directories.values() : [];
    this.#visited = new Set(Array.from(directories, ({ identity }) => identity));
  }

  *run(): Effects<Linked> {
    while (this.#waiting.length > 0) {
      // The first link to a directory determines its path, so there must be an order.
      const links = this.#waiting.sort(([a], [b]) => (a < b ? -1 : 1));
      this.#waiting = [];
      for (const [key, path] of links) yield* this.#follow(key, path);
    }
    const { unreadable } = this.#own;
    yield* this.part.sweep([], new Subtrees(['']), this.options.scope, () => false, unreadable);
    const part = yield* this.part.part();
    return { part, mounts: this.#mounts, consulted: mergeDirectories(this.#chains) };
  }

  protected override enters(_directory: Entry, identity: string): boolean {
    if (this.#visited.has(identity)) return false;
    this.#visited.add(identity);
    return true;
  }

  protected override onLink(key: string, path: string): void {
    this.#waiting.push([key, path]);
  }

  protected override onMount(_key: string, path: string, identity: string): void {
    this.#mounts.set(identity, path);
  }

  *#follow(key: string, path: string): Effects<void> {
    const { followLinks, allowedMounts, skipFiles } = this.options;
    const chain = yield* resolveChain(path, allowedMounts);
    const { end, mounts, links } = chain;
    if (end.kind === 'disallowed') throw this.disallowed(path);
    if (end.kind !== 'found') return;
    for (const [identity, place] of mounts) {
      this.assertAllowed(identity, place);
      this.#mounts.set(identity, place);
    }
    const found = { key, path: end.path, stat: end.stat };
    if (end.stat.isFile()) {
      const parent = keyBelow(this.root, dirname(end.path));
      if (parent === undefined || !this.#own.directories.has(parent)) this.#chains.push(chain);
      if (skipFiles !== true) this.addFile(found, links);
    }
    // The links in a volume represent its contents; one that leads out of the volume is an ordinary link.
    const isKey =
      hopsOf(chain).get(path)?.startsWith(`${DATA_LINK}/`) === true &&
      keyBelow(dirname(path), end.path) !== undefined;
    if (end.stat.isDirectory() && (followLinks || isKey)) yield* this.list([found]);
  }
}
