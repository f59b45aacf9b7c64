/** A volume among listed directories: how it is recognized, and its keys in a tree, those of its revision (volume.ts). */
import { errnoOf, hasMoved, isExhausted } from '../../core/errors/errno.js';
import { slices, type Steps } from '../../core/scheduling/steps.js';
import { within } from '../absolute-path.js';
import { MOVED } from '../attempts.js';
import { directoriesAbove } from '../consulted.js';
import type { Disk } from '../disk.js';
import type { Entry } from '../listing.js';
import { readingError } from '../target-error.js';
import { childOf } from '../tree-scope.js';
import { DATA_LINK, isRevisionName, KUBELET_PENDING_LINK } from '../volume-layout.js';
import type { TreeDirectory, TreeLookOptions, Visited } from './tree-nodes.js';
import type { TreeVisits } from './tree-visits.js';
import { publishedIn, type KnownVolume, type VolumeReading } from './volume.js';

export function isDataLink(entry: Entry): boolean {
  return entry.name === DATA_LINK && entry.isSymbolicLink();
}

/** Whether a directory is a volume without its `..data`, as in the gap of a swap. @param hidden see `isUserVisible`. */
export function isVolumeInGap(hidden: readonly Entry[]): boolean {
  if (hidden.some(({ name }) => name === DATA_LINK)) return false;
  return hidden.some(
    (entry) => entry.name === KUBELET_PENDING_LINK || (isRevisionName(entry.name) && entry.isDirectory()),
  );
}

/** Whether a directory is or was a volume: its keys lead to `..data`, or it has no file of its own. */
export function* looksLikeVolume(
  path: string,
  shown: readonly Entry[],
  hidden: readonly Entry[],
  disk: Disk,
): Steps<boolean> {
  if (hidden.some(isDataLink)) return true;
  if (isVolumeInGap(hidden) && shown.every((entry) => entry.isDirectory())) return true;
  const slice = slices();
  for (const entry of shown) {
    yield* slice();
    const target = entry.isSymbolicLink() ? yield* disk.readlink(within(path, entry.name)) : undefined;
    if (target?.startsWith(`${DATA_LINK}/`)) return true;
  }
  return false;
}

/** Reads a volume in a tree. */
export function* readTreeVolume(
  visited: Visited,
  look: TreeLookOptions,
  visits: TreeVisits,
  isLastAttempt: boolean,
  disk: Disk,
): Steps<void> {
  const { nodes, extent } = look;
  const { key, path } = visited;
  const directory = nodes.directories.get(key);
  if (!directory?.volume) return;
  try {
    const published = yield* publishedIn(visited, disk);
    if (published === MOVED) {
      visits.moved(key);
      return;
    }
    if (published?.kind === 'unreadable') {
      nodes.setUnreadable(key, published.error);
      return;
    }
    nodes.setReadable(key);
    if (published?.kind === 'missing') {
      if (directory.names.size > 0) visits.visitLinksThrough(path);
      nodes.setKeys(directory, new Set());
      return;
    }
    const reading = published ? yield* directory.volume.look(published, extent, disk) : MOVED;
    if (reading === MOVED) visits.moved(key);
    else setVolume(look, visits, directory, directory.volume, reading);
  } catch (error) {
    if (errnoOf(error) === undefined || isExhausted(error)) throw error;
    if (hasMoved(error) && !isLastAttempt) visits.moved(key);
    else {
      const at = (error as NodeJS.ErrnoException).path ?? path;
      nodes.setUnreadable(key, readingError(at, error));
      const above = yield* directoriesAbove(at, disk.afresh);
      nodes.setLink(childOf(key, DATA_LINK), [...directory.volume.through, ...above]);
      nodes.name(childOf(key, DATA_LINK));
    }
  }
}

function setVolume(
  { nodes, scope }: TreeLookOptions,
  visits: TreeVisits,
  directory: TreeDirectory,
  { through }: KnownVolume,
  { files, revision }: VolumeReading,
): void {
  const { key } = directory;
  const names = new Set<string>();
  for (const [name, file] of files) {
    const child = childOf(key, name);
    if (!scope.takes(child) || scope.ignores(child, key)) continue;
    visits.notice(child, revision.way);
    nodes.setFile(child, file);
    names.add(name);
  }
  if (through.length > 0) {
    // A name that no key has.
    nodes.setLink(childOf(key, DATA_LINK), through);
    names.add(DATA_LINK);
  }
  // Perhaps all of them are gone.
  for (const name of directory.names) if (!names.has(name)) visits.notice(childOf(key, name), revision.way);
  nodes.setKeys(directory, names);
  visits.followed(key, revision.way.links);
}
