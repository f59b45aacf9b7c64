import { call, type Effects } from '../fs/effects.js';
import type { HeldDirectory } from './held-directory.js';
import { ifThere } from './tolerated-failures.js';

/** As deep as the longest path can be; only a tree that was made relative to a descriptor is deeper. */
const MAX_DEPTH = 2048;

/** Removes an entry of a directory with everything in it. No link is followed. What is gone already is fine. */
export function* removeTree(parent: HeldDirectory, name: string, depth = 0): Effects<void> {
  const stat = yield* ifThere(call('lstat', parent.at(name)));
  if (!stat) return;
  if (!stat.isDirectory()) {
    yield* ifThere(call('unlink', parent.at(name)));
    return;
  }
  // If something else has taken its place by now, this fails, and the next sweep finds it.
  const directory = yield* ifThere(parent.enter(name));
  if (!directory) return;
  try {
    yield* emptyDirectory(directory, depth);
  } finally {
    yield* directory.close();
  }
  yield* ifThere(call('rmdir', parent.at(name)));
}

/** Removes everything in a directory, which stays. */
export function* emptyDirectory(directory: HeldDirectory, depth = 0): Effects<void> {
  if (depth === MAX_DEPTH) throw new Error(`directories in "${directory.path}" are nested too deeply`);
  yield* directory.assertInPlace();
  for (const name of yield* call('readdir', directory.at('.'))) yield* removeTree(directory, name, depth + 1);
}
