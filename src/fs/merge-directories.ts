import type { WatchedDirectory } from '../core/watch-backend.js';
import type { Consulted } from './observation.js';

/** Merges lists of directories: each directory once, with all entries that matter in it. */
export function mergeDirectories(directories: readonly WatchedDirectory[]): WatchedDirectory[] {
  const byPath = new Map<string, WatchedDirectory[]>();
  for (const directory of directories) {
    const same = byPath.get(directory.path);
    if (same) same.push(directory);
    else byPath.set(directory.path, [directory]);
  }
  return [...byPath.values()].map(together);
}

/** One directory, as it was found several times. */
function together(same: WatchedDirectory[]): WatchedDirectory {
  const [first] = same as [WatchedDirectory];
  if (same.length === 1) return first;
  const { path, identity } = same.at(-1) ?? first;
  const tree = same.find((each) => each.tree)?.tree;
  const rest = tree ? { path, identity, tree } : { path, identity };
  if (same.some(({ entries }) => !entries)) return rest;
  const entries = new Set(same.flatMap((each) => each.entries ?? []));
  return { ...rest, entries: [...entries], isAncestor: same.every(({ isAncestor }) => isAncestor === true) };
}

/** Whether these are the same directories with the same entries, in the same order. */
export function haveSameDirectories(
  { directories: one }: Consulted,
  { directories: other }: Consulted,
): boolean {
  if (one === other) return true;
  if (one.length !== other.length) return false;
  for (let at = 0; at < one.length; at += 1) if (!isSame(one[at], other[at])) return false;
  return true;
}

function isSame(one: WatchedDirectory | undefined, other: WatchedDirectory | undefined): boolean {
  if (one === other) return true;
  if (one?.path !== other?.path || one?.identity !== other?.identity) return false;
  if (one?.isAncestor !== other?.isAncestor || one?.tree !== other?.tree) return false;
  return one?.entries === other?.entries || one?.entries?.join('/') === other?.entries?.join('/');
}
