import type { BigIntStats } from 'node:fs';
import { basename, dirname } from 'node:path';

import { MAX_LINKS } from '../core/file-system.js';
import type { HeldDirectory } from './held-directory.js';
import { openDirectory, targetOf } from './open-directory.js';
import { wait, type Steps } from '../core/steps.js';
import { mayReplace } from './trust.js';
import { Refusal, type WriteProgress } from './write-error.js';
import type { ReplaceSettings } from './write-options.js';

/** Where a write goes: a name in a directory that is held open, and the file that has that name. */
export interface Destination {
  /** Absolute, with the links at its end followed, if `symlink` says so. */
  readonly path: string;
  readonly name: string;
  readonly directory: HeldDirectory;
  /** The file to replace. */
  readonly existing: BigIntStats | undefined;
}

/** Follows the links at the end of a path, and opens the directory of the file. The caller closes it. */
export function* openDestination(
  path: string,
  settings: ReplaceSettings,
  isBlocking: boolean,
  progress: WriteProgress,
): Steps<Destination> {
  const { fs, durability, createDirectory, symlink } = settings;
  const isDurable = durability === 'full';
  const opening = { fs, isBlocking, isReadable: isDurable, isDurable, creates: createDirectory };
  for (let links = 0; ; links += 1) {
    if (path.endsWith('/')) {
      throw new Refusal('ERR_WRITE_NOT_FILE', 'a path that ends with a slash is that of a directory');
    }
    progress.step = 'open-directory';
    const directory = yield* openDirectory(dirname(path), opening, progress);
    try {
      const name = basename(path);
      progress.step = 'resolve';
      const stat = yield* wait(directory.lstat(name));
      const isLink = stat?.isSymbolicLink() === true;
      if (!isLink || symlink === 'replace') {
        if (!isLink && stat) assertReplaceable(stat, directory.stat);
        return { path, name, directory, existing: isLink ? undefined : stat };
      }
      if (symlink === 'error') throw unfollowed('it is a symbolic link, and symlink is "error"');
      if (links === MAX_LINKS) throw unfollowed(`it leads through more than ${MAX_LINKS} symbolic links`);
      path = yield* targetOf(stat, path, directory);
    } catch (error) {
      yield* wait(directory.close());
      throw error;
    }
    yield* wait(directory.close());
  }
}

function unfollowed(what: string): Refusal {
  return new Refusal('ERR_WRITE_NOT_FILE', what);
}

/** Refuses anything but a file, and a file that another user may have put there. */
function assertReplaceable(stat: BigIntStats, directory: BigIntStats): void {
  if (!stat.isFile()) {
    const what = stat.isDirectory() ? 'it is a directory' : 'it is a device, a pipe or a socket';
    throw new Refusal('ERR_WRITE_NOT_FILE', what);
  }
  if (!mayReplace(stat, directory)) {
    const what = 'it belongs to another user, in a directory where others can create files';
    throw new Refusal('ERR_WRITE_UNTRUSTED', `${what}; remove it, or write to a directory of your own`);
  }
}
