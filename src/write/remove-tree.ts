import { attempt } from './calls.js';
import type { HeldDirectory } from './held-directory.js';
import { wait, type Steps } from '../core/steps.js';
import { Refusal } from './write-error.js';

/** As deep as the longest path can be; only a tree that was made relative to a descriptor is deeper. */
const MAX_DEPTH = 2048;

/**
 * Removes an entry of a directory, with everything in it that can be removed. Follows no link and enters no mount point.
 * What is gone already is no error.
 */
export function* removeTree(parent: HeldDirectory, name: string): Steps<void> {
  const stat = yield* wait(parent.lstat(name));
  if (stat) yield* remove(parent, name, stat.isDirectory(), 0);
}

/** Removes everything in a directory that can be removed. The directory stays. */
export function* emptyDirectory(directory: HeldDirectory, depth = 0): Steps<void> {
  if (depth === MAX_DEPTH) throw new Error(`directories in "${directory.path}" are nested too deeply`);
  yield* directory.assertInPlace();
  yield* directory.forEach(yield* directory.list(), (entry) =>
    remove(directory, entry.name, entry.isDirectory(), depth + 1),
  );
}

function* remove(parent: HeldDirectory, name: string, isDirectory: boolean, depth: number): Steps<void> {
  const directory = isDirectory ? yield* parent.enter(name) : undefined;
  // If a directory has taken its place by now, this fails, and the next sweep removes it.
  if (!directory) yield* parent.unlink(name);
  else if (directory.stat.dev === parent.stat.dev) {
    yield* directory.during(emptyDirectory(directory, depth));
    yield* attempt(() => parent.calls.rmdir(parent.at(name)), ['ENOENT']);
  } else {
    yield* wait(directory.close());
    throw new Refusal('ERR_WRITE_MOUNTED', `"${directory.path}" is a mount point; unmount it to remove it`);
  }
}
