/** The links of a volume: `..data`, and one for each name that its users see. */
import { errnoOf } from '../core/errno.js';
import { call, type Effects } from '../fs/effects.js';
import { DATA_LINK, isUserVisible, userLinkTarget } from '../fs/volume-layout.js';
import type { HeldDirectory } from './held-directory.js';
import { ifExists, runAll } from './tolerated-failures.js';
import { removeUnfinished, temporaryName } from './temporary-name.js';

/** How often the links are aligned anew because another writer has swapped meanwhile. */
const MAX_ALIGNMENTS = 20;

/** What `..data` points to; undefined when it is missing or not a link. */
export function publishedRevision(volume: HeldDirectory): Effects<string | undefined> {
  return readLink(volume, DATA_LINK);
}

/** What a link points to; undefined when it is missing or not a link. */
export function* readLink(volume: HeldDirectory, name: string): Effects<string | undefined> {
  try {
    return yield* call('readlink', volume.at(name));
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'EINVAL') return undefined;
    throw error;
  }
}

/** Opens a revision; undefined when it is missing, a link, or not in the volume itself. */
export function* openRevision(volume: HeldDirectory, revision: string): Effects<HeldDirectory | undefined> {
  if (revision.includes('/') || ['', '.', '..'].includes(revision)) return undefined;
  try {
    return yield* volume.enter(revision);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errnoOf(error) ?? '')) return undefined;
    throw error;
  }
}

/** A revision, and the names that its users see. */
export interface KnownRevision {
  readonly revision: string;
  readonly names: readonly string[];
}

/**
 * Makes the user-visible links match the published revision. Returns whether any had to be changed. One that cannot be
 * changed is a failure when the others are done.
 * @param known need not be listed while it is the published one, since nobody writes into a revision.
 */
export function* alignLinks(volume: HeldDirectory, known: KnownRevision): Effects<boolean> {
  let changed = false;
  for (let attempt = 1; attempt <= MAX_ALIGNMENTS; attempt += 1) {
    const revision = yield* publishedRevision(volume);
    if (revision === undefined) break; // another writer has cleared the volume
    const names = revision === known.revision ? known.names : yield* listRevision(volume, revision);
    if (names) {
      const linking = names.map(
        (name) =>
          function* (): Effects<void> {
            if (yield* linkName(volume, name)) changed = true;
          },
      );
      const removing = function* (): Effects<void> {
        if (yield* removeLinks(volume, new Set(names))) changed = true;
      };
      yield* runAll([...linking, removing]);
    }
    // Another process may have swapped meanwhile, and seen links of ours that are wrong now.
    if ((yield* publishedRevision(volume)) === revision) break;
  }
  return changed;
}

function* listRevision(volume: HeldDirectory, revision: string): Effects<string[] | undefined> {
  const directory = yield* openRevision(volume, revision);
  if (!directory) return undefined;
  try {
    return yield* call('readdir', directory.at('.'));
  } finally {
    yield* directory.close();
  }
}

function* linkName(volume: HeldDirectory, name: string): Effects<boolean> {
  const path = volume.at(name);
  const target = userLinkTarget(name);
  const found = yield* readLink(volume, name);
  if (found === target) return false;
  if (found === undefined) {
    try {
      yield* call('symlink', target, path);
      return true;
    } catch (error) {
      // A file has the name, or another writer was quicker.
      if (errnoOf(error) !== 'EEXIST') throw error;
    }
  }
  const pending = volume.at(temporaryName('link'));
  try {
    yield* call('symlink', target, pending);
    yield* call('rename', pending, path);
    return true;
  } catch (error) {
    yield* removeUnfinished(pending);
    throw error;
  }
}

/**
 * Removes the links of keys that are not wanted, including those of other writers, and no other entries. Returns
 * whether there were any.
 */
export function* removeLinks(volume: HeldDirectory, wanted: ReadonlySet<string>): Effects<boolean> {
  let removed = false;
  const unwanted = (yield* call('readdir', volume.at('.'))).filter(
    (name) => isUserVisible(name) && !wanted.has(name),
  );
  const removing = unwanted.map(
    (name) =>
      function* (): Effects<void> {
        if ((yield* readLink(volume, name)) !== userLinkTarget(name)) return;
        yield* ifExists(call('unlink', volume.at(name)));
        removed = true;
      },
  );
  yield* runAll(removing);
  return removed;
}
