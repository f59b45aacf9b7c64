/** The links of a volume: `..data`, and one for each name that its users see. */
import { isUserVisible, userLinkTarget } from '../fs/volume-layout.js';
import type { HeldDirectory } from './held-directory.js';
import { wait, type Steps } from '../core/scheduling/steps.js';
import { removeUnfinished, temporaryName } from './sweep.js';
import { listRevision, publishedRevision } from './volume-revision.js';

/** How often the links are aligned again because another writer has swapped meanwhile. */
const MAX_ALIGNMENTS = 20;

/**
 * Makes the user-visible links match the published revision. If one cannot be changed, the error is thrown after all
 * others have been.
 */
export function* alignLinks(volume: HeldDirectory): Steps<void> {
  for (let attempt = 1; attempt <= MAX_ALIGNMENTS; attempt += 1) {
    const revision = yield* publishedRevision(volume);
    if (revision === undefined) return; // another writer has cleared the volume
    const names = yield* listRevision(volume, revision);
    if (names) yield* setLinks(volume, names);
    // Another process may have swapped meanwhile, and seen links of ours that are wrong now.
    if ((yield* publishedRevision(volume)) === revision) return;
  }
}

/**
 * Creates the links with these names, and removes those of other keys, including keys of other writers, but no other
 * entries.
 */
export function* setLinks(volume: HeldDirectory, names: readonly string[]): Steps<void> {
  const wanted = new Set(names);
  const unwanted = (yield* volume.list())
    .map(({ name }) => name)
    .filter((name) => isUserVisible(name) && !wanted.has(name));
  yield* volume.forEach([...names, ...unwanted], (name) =>
    wanted.has(name) ? setLink(volume, name) : removeLink(volume, name),
  );
}

function* setLink(volume: HeldDirectory, name: string): Steps<void> {
  const target = userLinkTarget(name);
  const found = yield* volume.readlink(name);
  if (found === target) return;
  // The name exists if it is that of a file, or if another writer was faster.
  if (found === undefined && (yield* volume.symlink(target, name, ['EEXIST']))) return;
  const pending = temporaryName('link');
  try {
    yield* volume.symlink(target, pending);
    yield* wait(volume.rename(pending, name));
  } catch (error) {
    yield* removeUnfinished(volume, pending);
    throw error;
  }
}

function* removeLink(volume: HeldDirectory, name: string): Steps<void> {
  if ((yield* volume.readlink(name)) === userLinkTarget(name)) yield* volume.unlink(name);
}
