/**
 * Removes the revisions of a volume that are no longer needed.
 *
 * | a revision                                             | is removed                         |
 * |--------------------------------------------------------|------------------------------------|
 * | that `..data` points to                                | never                              |
 * | that a pending link points to                          | never; the link counts for a day   |
 * | that was replaced, and is kept for its readers         | after `graceMs`                    |
 * | any other, and what only has the name of a revision    | at once                            |
 */
import { errnoOf } from '../core/errors/errno.js';
import { told } from '../core/ports/platform-path.js';
import { KUBELET_PENDING_LINK, isRevisionName } from '../fs/volume-layout.js';
import type { HeldDirectory } from './held-directory.js';
import { wait, type Steps } from '../core/scheduling/steps.js';
import { attempt } from './calls.js';
import { isNameOf, removeAbandoned, removeUnfinished } from './sweep.js';
import { publishedRevision } from './volume-revision.js';
import { failureOf, Refusal } from './write-error.js';

/** The errors of `rmdir` for a directory that is not empty. */
const NOT_EMPTY = ['ENOTEMPTY', 'EEXIST'];

/** As deep as the longest path can be; only a tree that was made relative to a descriptor is deeper. */
const MAX_DEPTH = 2048;

/**
 * Removes every revision that is not needed, even if another one cannot be removed.
 * @param kept the replaced revisions that are kept.
 * @throws {WriteError} at the end, for the first revision that cannot be removed.
 */
export function* sweepRevisions(
  volume: HeldDirectory,
  kept: ReadonlyMap<string, unknown> = new Map(),
): Steps<void> {
  const revisions = (yield* volume.list()).map(({ name }) => name).filter(isRevisionName);
  // The order matters. A listed revision was announced before, so its pending link is listed now, or has become
  // `..data`, which is read last.
  const needed = yield* pendingRevisions(volume);
  needed.add(yield* publishedRevision(volume));
  const unneeded = revisions.filter((revision) => !needed.has(revision) && !kept.has(revision));
  yield* volume.forEach(unneeded, function* (revision) {
    try {
      yield* removeTree(volume, revision);
    } catch (error) {
      const path = `${volume.path}/${revision}`;
      throw failureOf({ path, step: 'remove', published: volume.write.published }, error);
    }
  });
}

/** The revisions that writers are about to publish. The links of writers that were killed are removed after a day. */
function* pendingRevisions(volume: HeldDirectory): Steps<Set<string | undefined>> {
  const names = (yield* volume.list()).map(({ name }) => name);
  if (names.includes(KUBELET_PENDING_LINK)) yield* removeUnfinished(volume, KUBELET_PENDING_LINK);
  const links = names.filter((name) => isNameOf('link', name));
  const revisions = new Set<string | undefined>();
  yield* volume.forEach(yield* removeAbandoned(volume, 'link', links), function* (link) {
    revisions.add(yield* volume.readlink(link));
  });
  return revisions;
}

/**
 * Removes an entry of a directory, with everything in it that can be removed. Follows no link and enters no mount
 * point. What is gone already is no error.
 */
export function* removeTree(parent: HeldDirectory, name: string): Steps<void> {
  const stat = yield* wait(parent.lstat(name));
  if (stat) yield* remove(parent, name, stat.isDirectory(), 0);
}

/** Removes everything in a directory of another one that can be removed. The directory stays. */
export function* emptyDirectory(parent: HeldDirectory, directory: HeldDirectory, depth = 0): Steps<void> {
  if (depth === MAX_DEPTH) throw new Error(`directories in "${told(directory.path)}" are nested too deeply`);
  if (directory.isOnMountOf(parent) === false) throw mountPoint(directory.path);
  yield* directory.assertInPlace();
  yield* directory.forEach(yield* directory.list(), function* (entry) {
    yield* directory.assertInPlace();
    yield* remove(directory, entry.name, entry.isDirectory(), depth + 1);
  });
}

function* remove(parent: HeldDirectory, name: string, isDirectory: boolean, depth: number): Steps<void> {
  try {
    const directory = isDirectory ? yield* parent.enter(name) : undefined;
    // If a directory has taken its place by now, this fails, and the next sweep removes it.
    if (!directory) yield* parent.unlink(name);
    else {
      yield* directory.during(removeContent(parent, name, directory, depth));
      yield* removeDirectory(parent, name, ['ENOENT']);
    }
  } catch (error) {
    // With some umasks, a writer that is killed leaves an empty directory that its owner cannot enter.
    const isClosed = isDirectory && errnoOf(error) === 'EACCES';
    // Another process may have removed it meanwhile.
    if (errnoOf(error) !== undefined && !(yield* wait(parent.lstat(name)))) return;
    if (!isClosed || !(yield* removeDirectory(parent, name, NOT_EMPTY))) throw error;
  }
}

function* removeContent(
  parent: HeldDirectory,
  name: string,
  directory: HeldDirectory,
  depth: number,
): Steps<void> {
  // Where the mount is not known, the system says: it refuses to remove a mount point for another reason.
  const isUnknown = directory.isOnMountOf(parent) === undefined;
  if (isUnknown && (yield* removeDirectory(parent, name, NOT_EMPTY))) return;
  yield* emptyDirectory(parent, directory, depth);
}

/** Returns whether it was removed; false if that failed with one of these codes. */
function* removeDirectory(parent: HeldDirectory, name: string, tolerated: readonly string[]): Steps<boolean> {
  try {
    return yield* attempt(() => parent.calls.rmdir(parent.at(name)), tolerated);
  } catch (error) {
    throw errnoOf(error) === 'EBUSY' ? mountPoint(`${parent.path}/${name}`) : error;
  }
}

function mountPoint(path: string): Refusal {
  return new Refusal('ERR_WRITE_MOUNTED', `"${told(path)}" is a mount point; unmount it to remove it`);
}
