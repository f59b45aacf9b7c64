/** What comparing what a look has found, listening to it and warning of it need besides. */

import { basename, dirname } from '../core/ports/platform-path.js';
import { errnoOf } from '../core/errors/errno.js';
import { nextSlice, slices, type Steps } from '../core/scheduling/steps.js';
import type { WatchedDirectory } from '../core/ports/watch-backend.js';
import { within } from '../fs/absolute-path.js';
import { haveSameDirectories, type Consulted } from '../fs/consulted.js';
import type { Disk } from '../fs/disk.js';
import { identityOf } from '../fs/file-identity.js';
import { differing } from '../fs/file-map.js';
import type { Mounts } from '../fs/mounts.js';
import type { Observation } from '../fs/observation.js';
import { NO_FILES, type SetSnapshot, type Snapshot } from '../fs/snapshot.js';
import {
  mountPointsIn,
  staleMountAt,
  staleMountMessages,
  staleMountsAt,
  type StaleMount,
} from '../fs/stale-mounts.js';
import { DATA_LINK, isUserVisible } from '../fs/volume-layout.js';
import type { Change } from './change.js';
import { volumeOf } from './waits.js';
import type { WatcherWarning } from './watcher-events.js';

/** When volumes were last swapped or, in the gap of a swap, last changed, by path, ns; undefined if a volume is gone, too. */
export type VolumeTimes = ReadonlyMap<string, bigint | undefined>;

export const NO_TIMES: VolumeTimes = new Map();

/** Of the volumes of reported files that are not found: that shows whether the files were there in the meantime. */
export function* volumesOfGone(
  reported: Snapshot | undefined,
  seen: Observation,
  disk: Disk,
): Steps<VolumeTimes> {
  if (!reported || (seen.kind !== 'found' && seen.kind !== 'missing')) return NO_TIMES;
  // What is missing as a whole, and not in a gap, waits for no swap.
  if (seen.kind === 'missing' && !seen.isGap && reported.kind !== 'group') return NO_TIMES;
  const files = seen.kind === 'found' ? seen.snapshot.files : NO_FILES;
  if (files === reported.files) return NO_TIMES;
  const times = new Map<string, bigint | undefined>();
  // What nothing leads to any more may be swapped without them.
  let consulted: ReadonlySet<string> | undefined;
  const slice = slices();
  for (const [, file, now] of differing(reported.files, files)) {
    yield* slice();
    const volume = now ? undefined : volumeOf(file);
    if (volume === undefined || times.has(volume)) continue;
    consulted ??= new Set(seen.consulted.directories.map(({ path }) => path));
    if (!consulted.has(volume)) continue;
    yield* nextSlice();
    try {
      const link = yield* disk.afresh.lstat(within(volume, DATA_LINK));
      times.set(volume, (link ?? (yield* disk.afresh.lstat(volume)))?.mtimeNs);
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
    }
  }
  return times;
}

/**
 * The files of a target that are mounted by themselves (`subPath`, `docker -v file:file`). What is written into such a
 * file is an event of the directory of its source, and not of the directory where it is mounted. So the file itself is
 * listened to.
 */
export class MountedFiles {
  #consulted: Consulted = { directories: [] };
  #version = '';
  /** The mount points among the entries that were consulted, without directories that are listened to anyway. */
  #points: readonly string[] = [];
  /** Those of them that are files. */
  #files: readonly WatchedDirectory[] = [];
  /** The mount points below the directory of the target where an update may never show, */
  #below: readonly string[] = [];
  /** and those of them that are listened to. */
  #listed: ReadonlySet<string> = new Set();
  #last: { readonly snapshot: Snapshot; readonly messages: readonly string[] } | undefined;

  /** Where to listen, and what never shows an update. While that stays the same, each is the same object. */
  *in(
    seen: Observation,
    mounts: Mounts,
    disk: Disk,
  ): Steps<{ consulted: Consulted; stale: readonly string[] }> {
    const consulted = yield* this.#with(seen, mounts, disk);
    return {
      consulted,
      stale: seen.kind === 'found' ? yield* this.#staleIn(seen.snapshot, mounts, disk) : [],
    };
  }

  /** What a look has consulted, and these files. */
  *#with(seen: Observation, mounts: Mounts, disk: Disk): Steps<Consulted> {
    const { consulted } = seen;
    const root = seen.kind === 'found' && seen.snapshot.kind !== 'group' ? rootOf(seen.snapshot) : '';
    const version = `${mounts.version} ${mounts.around(root).table.version} ${root}`;
    if (version !== this.#version || !haveSameDirectories(consulted, this.#consulted)) {
      this.#consulted = consulted;
      this.#version = version;
      this.#last = undefined;
      this.#below = root === '' ? [] : mountPointsIn(mounts, root);
      const paths = new Set(this.#below.length === 0 ? [] : consulted.directories.map(({ path }) => path));
      this.#listed = new Set(this.#below.filter((point) => paths.has(point)));
      this.#points = pointsAmong(consulted, mounts);
    }
    this.#files = [];
    if (this.#points.length === 0) return this.#consulted;
    const files: WatchedDirectory[] = [];
    for (const path of this.#points) {
      yield* nextSlice();
      try {
        const stat = yield* disk.lstat(path);
        if (stat?.isFile()) files.push({ path, identity: identityOf(stat), isFile: true });
      } catch (error) {
        if (errnoOf(error) === undefined) throw error;
      }
    }
    this.#files = files;
    return files.length === 0 ? this.#consulted : { directories: [...this.#consulted.directories, ...files] };
  }

  /** What of a snapshot never shows an update, in words. */
  *#staleIn(snapshot: Snapshot, mounts: Mounts, disk: Disk): Steps<readonly string[]> {
    if (this.#last?.snapshot === snapshot) return this.#last.messages;
    const messages = staleMountMessages(yield* this.#mountsIn(snapshot, mounts, disk));
    this.#last = { snapshot, messages };
    return messages;
  }

  *#mountsIn(snapshot: Snapshot, mounts: Mounts, disk: Disk): Steps<readonly StaleMount[]> {
    if (snapshot.kind === 'missing') return [];
    const at = (path: string, kind: 'file' | 'directory'): StaleMount[] => {
      const mount = staleMountAt(mounts, path, kind);
      return mount ? [mount] : [];
    };
    if (snapshot.kind === 'group')
      return [...snapshot.files.values()].flatMap(({ realPath }) => at(realPath, 'file'));
    const { realPath, kind } = snapshot;
    const own = at(realPath, kind === 'file' ? 'file' : 'directory');
    if (kind === 'file' || own.length > 0) return own;
    const root = within(rootOf(snapshot), '');
    const inside = this.#below.filter(
      (point) => this.#listed.has(point) || isInSet(snapshot, point.slice(root.length).split('/')),
    );
    // A link leads to these.
    const elsewhere = this.#files.filter(({ path }) => !path.startsWith(root));
    return [
      ...(yield* staleMountsAt(mounts, inside, kind === 'tree', disk)),
      ...elsewhere.flatMap(({ path }) => at(path, 'file')),
    ];
  }
}

/** The directory of a target; that of a volume is above its revision. */
function rootOf({ realPath, revision }: Pick<SetSnapshot, 'realPath' | 'revision'>): string {
  return revision !== undefined && realPath.endsWith(`/${revision}`) ? dirname(realPath) : realPath;
}

/** Whether a mount point is one of the files of a directory. @param names of the path in the directory. */
function isInSet({ kind, files }: SetSnapshot, names: readonly string[]): boolean {
  // A file in a revision has the key that leads to it.
  if (files.has(names.filter((name) => !name.startsWith('..')).join('/'))) return true;
  const [name = ''] = names;
  return kind !== 'tree' && names.length === 1 && isUserVisible(name);
}

function pointsAmong({ directories }: Consulted, mounts: Mounts): readonly string[] {
  const byPath = new Map(directories.map(({ path, entries }) => [path, entries]));
  // A directory may have many entries, and many mount points among them.
  const named = new Map<string, ReadonlySet<string>>();
  return [...mounts.byPoint.keys()].filter((point) => {
    const directory = dirname(point);
    if (byPath.has(point) || !byPath.has(directory)) return false;
    const entries = byPath.get(directory);
    if (!entries) return true;
    const names = named.get(directory) ?? new Set(entries);
    named.set(directory, names);
    return names.has(basename(point));
  });
}

/** Whether an observation is the same as before, so that nothing has to be compared. */
export function isSameObservation(seen: Observation, before: Observation | undefined): boolean {
  if (seen === before || seen.kind === 'found') return seen === before;
  if (seen.kind === 'missing') return before?.kind === 'missing' && !seen.isRegrouped;
  return (
    seen.kind === 'unreadable' && before?.kind === 'unreadable' && seen.error.message === before.error.message
  );
}

/** The time from a change on the disk to its report, ms; undefined if unknown. @param seen what was seen last. */
export function delayUntil(
  now: number,
  { cause, current }: Change,
  seen: Observation | undefined,
): number | undefined {
  if (cause === 'start' || seen?.kind !== 'found' || seen.snapshot !== current) return undefined;
  if (seen.publishedNs === undefined) return undefined;
  return Math.max(0, now - Number(seen.publishedNs / 1_000n) / 1_000);
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

/** Why what is watched is not reported in full, or never changes. */
export function warningsOf(seen: Observation, stale: readonly string[]): readonly WatcherWarning[] {
  const warnings: WatcherWarning[] = [];
  const limited = seen.kind === 'found' ? seen.limited : undefined;
  if (limited !== undefined) warnings.push({ code: 'limit', message: limited });
  for (const message of stale) warnings.push({ code: 'subPath', message });
  return warnings;
}
