/**
 * Mounts that never show an update. kubelet mounts a `subPath` by binding a file or directory of one revision, and the
 * mount keeps showing that revision; whatever replaces the source of a file that is mounted by itself never appears.
 *
 * | what is mounted                                             | is                                          |
 * |-------------------------------------------------------------|---------------------------------------------|
 * | a revision, or a file or directory in one                   | `revision`                                  |
 * | any other file                                              | `file`                                      |
 * | any other directory, a whole file system                    | not stale: a mount point shows its changes  |
 *
 * Behind a link to the root of a process, the mounts are those of that process (`Mounts.of` and `Mounts.around`).
 */
import { errnoOf } from '../core/errors/errno.js';
import { nextSlice, type Steps } from '../core/scheduling/steps.js';
import type { Disk } from './disk.js';
import type { Mount } from './mount-table.js';
import type { Mounts } from './mounts.js';
import { isRevisionName } from './volume-layout.js';

/** A mount that never shows an update. */
export interface StaleMount {
  readonly kind: 'revision' | 'file';
  /** The mount point. */
  readonly path: string;
}

/**
 * The stale mount that a file or directory is on; undefined if there is none.
 * @param realPath every link resolved.
 */
export function staleMountAt(
  mounts: Mounts,
  realPath: string,
  kind: 'file' | 'directory',
): StaleMount | undefined {
  const { table, path, prefix } = mounts.around(realPath);
  const mount = table.at(path);
  if (isOfRevision(mount)) return { kind: 'revision', path: `${prefix}${mount.point}` };
  const isFile = kind === 'file' && mount.root !== '' && mount.point === path;
  return isFile ? { kind: 'file', path: realPath } : undefined;
}

/** The paths in a directory, at any depth, where a stale mount may be. @param directory every link resolved. */
export function mountPointsIn(mounts: Mounts, directory: string): string[] {
  const { table, path, prefix } = mounts.around(directory);
  const within = path === '/' ? path : `${path}/`;
  // The root of a file system is a directory.
  return [...table.byPoint.values()]
    .filter(({ point, root }) => root !== '' && root !== '/' && point !== path && point.startsWith(within))
    .map(({ point }) => `${prefix}${point}`);
}

/** The stale mounts among these mount points. @param hasDirectories whether directories count, or only files. */
export function* staleMountsAt(
  mounts: Mounts,
  points: readonly string[],
  hasDirectories: boolean,
  disk: Disk,
): Steps<StaleMount[]> {
  const stale: StaleMount[] = [];
  for (const point of points) {
    yield* nextSlice();
    try {
      const stat = yield* disk.lstat(point);
      if (!stat?.isFile() && !(hasDirectories && stat?.isDirectory())) continue;
      const found = staleMountAt(mounts, point, stat.isFile() ? 'file' : 'directory');
      if (found) stale.push(found);
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
    }
  }
  return stale;
}

/** How many mount points a message names. */
const MAX_NAMED = 3;

/** What is wrong with these mounts, and what to do; a sentence for each kind. */
export function staleMountMessages(mounts: readonly StaleMount[]): string[] {
  return (['revision', 'file'] as const).flatMap((kind) => {
    const paths = [...new Set(mounts.filter((mount) => mount.kind === kind).map(({ path }) => path))].sort();
    return paths.length === 0 ? [] : [SENTENCES[kind](namesOf(paths), paths.length > 1)];
  });
}

function namesOf(paths: readonly string[]): string {
  const names = paths.slice(0, MAX_NAMED).map((path) => `"${path}"`);
  const rest = paths.length - names.length;
  if (rest > 0) names.push(`${rest} more`);
  return names.length === 1 ? names.join() : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

const SENTENCES = {
  revision: (names: string, areSeveral: boolean) =>
    `${names} ${areSeveral ? 'are subPath mounts' : 'is a subPath mount'} of one revision, which never changes. Mount the whole volume instead`,
  file: (names: string, areSeveral: boolean) =>
    `${names} ${areSeveral ? 'are mounted by themselves' : 'is mounted by itself'} (subPath, or a bind mount of one file); a file that replaces ${areSeveral ? 'their' : 'its'} source never appears there. Mount the directory instead`,
};

function isOfRevision({ root }: Mount): boolean {
  return root.split('/').some(isRevisionName);
}
