import { call, type Effects } from '../fs/effects.js';
import type { HeldDirectory } from './held-directory.js';
import { ifExists, runAll } from './tolerated-failures.js';
import { Refusal } from './write-progress.js';

/** As deep as the longest path can be; only a tree that was made relative to a descriptor is deeper. */
const MAX_DEPTH = 2048;

/**
 * Removes an entry of a directory with everything in it that can be removed. No link is followed, and nothing that is
 * mounted there is entered. What is gone already is fine.
 */
export function* removeTree(parent: HeldDirectory, name: string, depth = 0): Effects<void> {
  const stat = yield* ifExists(call('lstat', parent.at(name)));
  if (!stat) return;
  if (!stat.isDirectory()) {
    yield* ifExists(call('unlink', parent.at(name)));
    return;
  }
  // If something else has taken its place by now, this fails, and the next sweep finds it.
  const directory = yield* ifExists(parent.enter(name));
  if (!directory) return;
  try {
    if (directory.stat.dev !== parent.stat.dev) {
      throw new Refusal('ERR_WRITE_MOUNTED', `"${directory.path}" is a mount point; unmount it to remove it`);
    }
    yield* emptyDirectory(directory, depth);
  } finally {
    yield* directory.close();
  }
  yield* ifExists(call('rmdir', parent.at(name)));
}

/** Removes everything in a directory that can be removed. The directory stays. */
export function* emptyDirectory(directory: HeldDirectory, depth = 0): Effects<void> {
  if (depth === MAX_DEPTH) throw new Error(`directories in "${directory.path}" are nested too deeply`);
  yield* directory.assertInPlace();
  const names = yield* call('readdir', directory.at('.'));
  yield* runAll(names.map((name) => () => removeTree(directory, name, depth + 1)));
}
