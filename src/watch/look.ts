/** One look of a watcher: what is at the target, and what comparing it and listening to it need besides. */
import { errnoOf } from '../core/errno.js';
import { nextSlice, type Steps } from '../core/steps.js';
import type { WatchedDirectory } from '../core/watch-backend.js';
import type { Disk } from '../fs/disk.js';
import type { Mounts } from '../fs/mounts.js';
import type { Consulted } from '../fs/consulted.js';
import type { Extent, Observation, Target } from '../fs/observation.js';
import type { Snapshot } from '../fs/snapshot.js';
import type { MountedFiles } from './mounted-files.js';
import { volumeOf } from './waits.js';

/** When volumes last changed, by path, ns; undefined if a volume is gone, too. */
export type VolumeTimes = ReadonlyMap<string, bigint | undefined>;

/** What a look has found. */
export interface Looked {
  readonly seen: Observation;
  /** Of the volumes whose reported files it has not found. */
  readonly volumeTimes: VolumeTimes;
  /** Where to listen. */
  readonly consulted: Consulted;
}

const NO_TIMES: VolumeTimes = new Map();

/** Looks once. @param reported what was last reported. */
export function* lookAt(
  target: Target,
  extent: Extent,
  reported: Snapshot | undefined,
  mountedFiles: MountedFiles,
  mounts: Mounts,
  disk: Disk,
): Steps<Looked> {
  const seen = yield* target.look(extent, disk);
  const volumeTimes = yield* volumesOfGone(reported, seen, disk);
  const consulted = yield* mountedFiles.with(seen.consulted, mounts, disk);
  return { seen, volumeTimes, consulted };
}

/**
 * When the volumes of reported files that are not found last changed: that shows whether the files were there in the
 * meantime.
 */
function* volumesOfGone(reported: Snapshot | undefined, seen: Observation, disk: Disk): Steps<VolumeTimes> {
  // A single file is never gone while something is found.
  if (seen.kind !== 'found' || seen.snapshot === reported || !reported || reported.kind === 'file')
    return NO_TIMES;
  const { files } = seen.snapshot;
  const times = new Map<string, bigint | undefined>();
  for (const [key, file] of reported.files) {
    const volume = files.has(key) ? undefined : volumeOf(file);
    if (volume === undefined || times.has(volume)) continue;
    yield* nextSlice();
    try {
      times.set(volume, (yield* disk.afresh.lstat(volume))?.mtimeNs);
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
    }
  }
  return times;
}

/** Whether an observation is the same as before, so that nothing has to be compared. */
export function isSameObservation(seen: Observation, before: Observation | undefined): boolean {
  if (seen === before || seen.kind === 'found') return seen === before;
  if (seen.kind === 'missing') return before?.kind === 'missing' && !seen.isRegrouped;
  return (
    seen.kind === 'unreadable' && before?.kind === 'unreadable' && seen.error.message === before.error.message
  );
}

/** The file system without events that the target is on, if any. What is mounted within it is left to the resync. */
export function eventlessOf(
  seen: Observation,
  directories: readonly WatchedDirectory[],
  mounts: Mounts,
): string | undefined {
  const own = seen.kind === 'found' ? seen.snapshot.realPath : undefined;
  const watched = directories.filter(({ path, isFile }) => isFile !== true || path === own);
  return mounts.eventlessFileSystem(watched.map(({ path }) => path));
}
