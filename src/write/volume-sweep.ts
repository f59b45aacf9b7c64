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
import { KUBELET_PENDING_LINK, isRevisionName } from '../fs/volume-layout.js';
import type { HeldDirectory } from './held-directory.js';
import { removeTree } from './remove-tree.js';
import type { Steps } from '../core/steps.js';
import { removeAbandoned, removeUnfinished } from './sweep.js';
import { isNameOf } from './temporary-name.js';
import { publishedRevision } from './volume-revision.js';
import { WriteProgress } from './write-error.js';

/**
 * Removes every revision that is not needed, even if another one cannot be removed.
 * @param kept the replaced revisions that are kept.
 * @throws {WriteError} at the end, for the first revision that cannot be removed.
 */
export function* sweepRevisions(
  volume: HeldDirectory,
  { path, published }: WriteProgress,
  kept: ReadonlyMap<string, unknown> = new Map(),
): Steps<void> {
  const revisions = (yield* volume.list()).map(({ name }) => name).filter(isRevisionName);
  // The order matters. A listed revision was announced before, so its pending link is listed now, or has become `..data`,
  // which is read last.
  const needed = yield* pendingRevisions(volume);
  needed.add(yield* publishedRevision(volume));
  const unneeded = revisions.filter((revision) => !needed.has(revision) && !kept.has(revision));
  yield* volume.forEach(unneeded, function* (revision) {
    try {
      yield* removeTree(volume, revision);
    } catch (error) {
      throw new WriteProgress(`${path}/${revision}`, 'remove', published).failure(error);
    }
  });
}

/** The revisions that writers are about to publish. The links of writers that were killed are removed after a day. */
function* pendingRevisions(volume: HeldDirectory): Steps<Set<string | undefined>> {
  const names = (yield* volume.list()).map(({ name }) => name);
  if (names.includes(KUBELET_PENDING_LINK)) yield* removeUnfinished(volume, KUBELET_PENDING_LINK);
  const links = names.filter((name) => isNameOf('link', name));
  const revisions = new Set<string | undefined>();
  yield* volume.forEach(yield* removeAbandoned(volume, links), function* (link) {
    revisions.add(yield* volume.readlink(link));
  });
  return revisions;
}
