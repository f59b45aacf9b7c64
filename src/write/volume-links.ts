/** The links of a volume: `..data`, and one for each name that its users see. */
import { isUserVisible, userLinkTarget } from '../fs/volume-layout.js';
import type { HeldDirectory } from './held-directory.js';
import { wait, type Steps } from '../core/scheduling/steps.js';
import { removeUnfinished, temporaryName } from './sweep.js';
import { listRevision, publishedRevision } from './volume-revision.js';

/** How often the links are aligned again because another writer has swapped meanwhile. */
const MAX_ALIGNMENTS = 20;

/**
 * Makes the user-visible links match the published revision. Returns whether any had to be changed. If one cannot be
 * changed, the error is thrown after all others have been.
 */
export function* alignLinks(volume: HeldDirectory): Steps<boolean> {
  let changed = false;
  for (let attempt = 1; attempt <= MAX_ALIGNMENTS; attempt += 1) {
    const revision = yield* publishedRevision(volume);
    if (revision === undefined) break; // another writer has cleared the volume
    const names = yield* listRevision(volume, revision);
    if (names && (yield* setLinks(volume, names))) changed = true;
    // Another process may have swapped meanwhile, and seen links of ours that are wrong now.
    if ((yield* publishedRevision(volume)) === revision) break;
  }
  return changed;
}

/**
 * Creates the links with these names, and removes those of other keys, including keys of other writers, but no other
 * entries. Returns whether anything had to be changed.
 */
export function* setLinks(volume: HeldDirectory, names: readonly string[]): Steps<boolean> {
  const wanted = new Set(names);
  const unwanted = (yield* volume.list())
    .map(({ name }) => name)
    .filter((name) => isUserVisible(name) && !wanted.has(name));
  let changed = false;
  yield* volume.forEach([...names, ...unwanted], function* (name) {
    if (yield* wanted.has(name) ? setLink(volume, name) : removeLink(volume, name)) changed = true;
  });
  return changed;
}

function* setLink(volume: HeldDirectory, name: string): Steps<boolean> {
  const target = userLinkTarget(name);
  const found = yield* volume.readlink(name);
  if (found === target) return false;
  // The name exists if it is that of a file, or if another writer was faster.
  if (found === undefined && (yield* volume.symlink(target, name, ['EEXIST']))) return true;
  const pending = temporaryName('link');
  try {
    yield* volume.symlink(target, pending);
    yield* wait(volume.rename(pending, name));
    return true;
  } catch (error) {
    yield* removeUnfinished(volume, pending);
    throw error;
  }
}

function* removeLink(volume: HeldDirectory, name: string): Steps<boolean> {
  return (yield* volume.readlink(name)) === userLinkTarget(name) && (yield* volume.unlink(name));
}
