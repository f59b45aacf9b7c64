/**
 * What was consulted to find a target: the directories to listen to. Whether an entry can be read depends on the entry
 * and on every directory above it, so they are listened to even in a revision, where nothing else is.
 */

import { basename, dirname } from '../core/ports/platform-path.js';
import { errnoOf } from '../core/errors/errno.js';
import type { Steps } from '../core/scheduling/steps.js';
import type { WatchedDirectory } from '../core/ports/watch-backend.js';
import type { Disk } from './disk.js';
import { identityOf } from './file-identity.js';

/** What was consulted to find a target. */
export interface Consulted {
  /** The directories to listen to, and the entries that matter in them. */
  readonly directories: readonly WatchedDirectory[];
}

/** A directory in which entries were looked up. */
export interface ConsultedDirectory extends WatchedDirectory {
  readonly entries: readonly string[];
}

/** Merges lists of directories: each directory once, with all entries that matter in it. */
export function mergeDirectories<D extends WatchedDirectory>(directories: Iterable<D>): D[] {
  const byPath = new Map<string, D | D[]>();
  for (const directory of directories) {
    const same = byPath.get(directory.path);
    if (!same) byPath.set(directory.path, directory);
    else if (Array.isArray(same)) same.push(directory);
    else byPath.set(directory.path, [same, directory]);
  }
  const merged: D[] = [];
  for (const same of byPath.values()) merged.push(Array.isArray(same) ? (together(same) as D) : same);
  return merged;
}

/** What all of these have consulted; merged on first use. */
export function consultedBy(all: () => readonly Consulted[]): Consulted {
  let merged: readonly WatchedDirectory[] | undefined;
  return {
    get directories() {
      return (merged ??= mergeDirectories(all().flatMap(({ directories }) => directories)));
    },
  };
}

/** One directory, as it was found several times. */
function together(same: readonly WatchedDirectory[]): WatchedDirectory {
  const [first] = same as [WatchedDirectory];
  const { path, identity } = same.at(-1) ?? first;
  const treeRoot = same.find((each) => each.treeRoot !== undefined)?.treeRoot;
  const rest = treeRoot === undefined ? { path, identity } : { path, identity, treeRoot };
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
  for (let at = 0; at < one.length; at += 1) {
    const a = one[at];
    const b = other[at];
    if (a === b) continue;
    if (a?.path !== b?.path || a?.identity !== b?.identity) return false;
    if (a?.isAncestor !== b?.isAncestor || a?.treeRoot !== b?.treeRoot) return false;
    if (a?.entries !== b?.entries && a?.entries?.join('/') !== b?.entries?.join('/')) return false;
  }
  return true;
}

/**
 * The directories above a path, each with the entry that leads to it. Those that cannot be looked up are left out: what
 * makes that possible again is an event of a directory above them.
 * @param path absolute, every link resolved.
 */
export function* directoriesAbove(path: string, disk: Disk): Steps<ConsultedDirectory[]> {
  const directories: ConsultedDirectory[] = [];
  for (let place = path; place !== dirname(place); place = dirname(place)) {
    const above = dirname(place);
    try {
      const stat = yield* disk.lstat(above);
      if (!stat?.isDirectory()) continue;
      const entries = [basename(place)];
      directories.push({ path: above, identity: identityOf(stat), entries, isAncestor: true });
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
    }
  }
  return directories;
}
