import { basename, dirname } from 'node:path';

import { errnoOf } from '../core/errno.js';
import { nextSlice, type Steps } from '../core/steps.js';
import type { WatchedDirectory } from '../core/watch-backend.js';
import type { Disk } from '../fs/disk.js';
import { identityOf } from '../fs/file-identity.js';
import type { Mounts } from '../fs/mounts.js';
import type { Consulted } from '../fs/consulted.js';

/**
 * The files of a target that are mounted by themselves (`subPath`, `docker -v file:file`). What is written into such a
 * file is an event of the directory of its source, and not of the directory where it is mounted. So the file itself is
 * listened to.
 */
export class MountedFiles {
  #consulted: Consulted | undefined;
  #version = 0;
  /** The mount points among the entries that were consulted, without directories that are listened to anyway. */
  #points: readonly string[] = [];

  /** What a look has consulted, and these files. */
  *with(consulted: Consulted, mounts: Mounts, disk: Disk): Steps<Consulted> {
    if (consulted !== this.#consulted || mounts.version !== this.#version) {
      this.#consulted = consulted;
      this.#version = mounts.version;
      this.#points = pointsAmong(consulted, mounts);
    }
    if (this.#points.length === 0) return consulted;
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
    return files.length === 0 ? consulted : { directories: [...consulted.directories, ...files] };
  }
}

function pointsAmong({ directories }: Consulted, mounts: Mounts): readonly string[] {
  const byPath = new Map(directories.map(({ path, entries }) => [path, entries]));
  const points = [...mounts.byPoint.keys()].filter(
    (point) => !byPath.has(point) && byPath.has(dirname(point)),
  );
  const named = new Map<string, ReadonlySet<string>>();
  return points.filter((point) => {
    const directory = dirname(point);
    const entries = byPath.get(directory);
    if (!entries) return true;
    const names = named.get(directory) ?? new Set(entries);
    named.set(directory, names);
    return names.has(basename(point));
  });
}
