/** A volume in a tree: its keys are those of its revision, which is read as a whole (volume.ts). */
import { errnoOf, hasMoved, isExhausted } from '../../core/errno.js';
import type { Steps } from '../../core/steps.js';
import { MOVED } from '../attempts.js';
import { directoriesAbove } from '../directories-above.js';
import type { Disk } from '../disk.js';
import { readingError } from '../target-error.js';
import { childOf } from '../tree-key.js';
import { DATA_LINK } from '../volume-layout.js';
import type { TreeDirectory, TreeLookOptions, Visited } from './tree-nodes.js';
import type { TreeVisits } from './tree-visits.js';
import { publishedIn, type KnownVolume, type VolumeReading } from './volume.js';

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
    if (!scope.includes(child) || scope.ignores(child, key)) continue;
    visits.notice(child, revision.way);
    nodes.setFile(child, file);
    names.add(name);
  }
  if (through.length > 0) {
    // A name that no key has.
    nodes.setLink(childOf(key, DATA_LINK), through);
    names.add(DATA_LINK);
  }
  nodes.setKeys(directory, names);
  visits.followed(key, revision.way.links);
}
