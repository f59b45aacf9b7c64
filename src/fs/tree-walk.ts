/**
 * What is below a directory at one instant: identities, no contents.
 *
 * A walk has two parts. The first visits what is there under its own path (own-walk.ts); a partial walk repeats only
 * the given places of it. The second visits what links lead to (linked-walk.ts). It is always repeated, since no hint
 * reports what happens there, and comes second, so that each directory is visited once, under its own path if it has
 * one in the tree. So links cause neither cycles nor duplicates, and the result does not depend on the order of events.
 *
 * Below a directory that can no longer be listed the files remain those that were last seen there.
 */
import { isDeepStrictEqual } from 'node:util';

import { within } from './absolute-path.js';
import { EarlyEnd, type TreeWalkOptions } from './directory-walk.js';
import type { Effects } from './effects.js';
import { walkLinks } from './linked-walk.js';
import { OwnWalk } from './own-walk.js';
import { keysThatDiffer } from './persistent-map.js';
import { keyBelow } from './tree-key.js';
import { joinParts, type OwnPart, type TreeObservation, type TreeWalk } from './tree-part.js';

/**
 * Walks a complete tree. What vanishes meanwhile, or cannot be read, is left out.
 * @param root absolute, every link resolved.
 */
export function* walkTree(root: string, options: TreeWalkOptions): Effects<TreeObservation> {
  return yield* walked(root, options, ['']);
}

/** The same without files: the directories to watch, at a fraction of the cost. */
export function* walkDirectories(root: string, options: TreeWalkOptions): Effects<TreeObservation> {
  return yield* walked(root, { ...options, skipFiles: true }, ['']);
}

/**
 * Walks the tree again where only these places may have changed since an earlier walk with the same options. Maps
 * without differences are those of the earlier walk, and without any difference the result is the earlier walk itself.
 * @param paths absolute: each is a file or link, or a directory with everything below it. Those that are not below
 * the root are ignored.
 * @param relisted the keys of directories whose entries may have changed. Below them, directories that differ are visited,
 * and files, but only the new ones in a directory of more than `VERIFIED_AT_ONCE` entries.
 */
export function* rewalkTree(
  previous: TreeWalk,
  paths: Iterable<string>,
  options: TreeWalkOptions,
  relisted: Iterable<string> = [],
): Effects<TreeObservation> {
  const { root } = previous;
  const keys = [...new Set(paths)].flatMap((path) => keyBelow(root, path) ?? []);
  return yield* walked(root, options, keys.sort(), [...relisted].sort(), previous);
}

function* walked(
  root: string,
  options: TreeWalkOptions,
  keys: readonly string[],
  relisted: readonly string[] = [],
  previous?: TreeWalk,
): Effects<TreeObservation> {
  try {
    const own = yield* new OwnWalk(root, options, previous?.own).run(keys, relisted);
    const {
      part: linked,
      consulted,
      mounts: linkedMounts,
    } = yield* walkLinks(root, options, own, previous?.linked);
    const parts = yield* joinParts(own, linked, previous);
    const mounts = new Map(linkedMounts);
    for (const [key, identity] of own.mounts) mounts.set(identity, within(root, key));
    const walk: TreeWalk = { kind: 'tree', root, mounts, consulted, ...parts };
    return previous && sameWalk(previous, walk) ? previous : walk;
  } catch (error) {
    if (error instanceof EarlyEnd) return error.observation;
    throw error;
  }
}

function sameWalk(a: TreeWalk, b: TreeWalk): boolean {
  return (
    sameOwn(a.own, b.own) &&
    a.files === b.files &&
    a.directories === b.directories &&
    a.unreadable === b.unreadable &&
    [...keysThatDiffer(a.mounts, b.mounts)].length === 0 &&
    (a.consulted === b.consulted || isDeepStrictEqual(a.consulted, b.consulted))
  );
}

function sameOwn(a: OwnPart, b: OwnPart): boolean {
  return a.links === b.links && a.mounts === b.mounts && a.listed === b.listed;
}
