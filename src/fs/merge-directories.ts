import type { WatchedDirectory } from '../core/watch-backend.js';
import type { Consulted } from './observation.js';

/** Merges lists of directories: each directory once, with all entries that matter in it. */
export function mergeDirectories(directories: readonly WatchedDirectory[]): WatchedDirectory[] {
  const merged = new Map<string, WatchedDirectory>();
  for (const directory of directories) {
    const known = merged.get(directory.path);
    merged.set(directory.path, known ? together(known, directory) : directory);
  }
  return [...merged.values()];
}

function together(one: WatchedDirectory, other: WatchedDirectory): WatchedDirectory {
  const { path, identity, tree = one.tree } = other;
  const rest = tree ? { path, identity, tree } : { path, identity };
  if (!one.entries || !other.entries) return rest;
  const isPassed = one.isPassed === true && other.isPassed === true;
  return { ...rest, entries: [...new Set([...one.entries, ...other.entries])], isPassed };
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
  if (one?.isPassed !== other?.isPassed || one?.tree !== other?.tree) return false;
  return one?.entries === other?.entries || one?.entries?.join('/') === other?.entries?.join('/');
}
