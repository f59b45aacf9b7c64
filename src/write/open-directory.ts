import { constants, type BigIntStats } from 'node:fs';
import { basename, dirname, isAbsolute } from 'node:path';

import { errnoOf } from '../core/errno.js';
import { MAX_LINKS, type FileSystem } from '../core/file-system.js';
import { Mounts } from '../fs/mounts.js';
import { attempt, callsAt, type Access } from './calls.js';
import { HeldDirectory, open } from './held-directory.js';
import { wait, type Steps } from './steps.js';
import { mayFollow } from './trust.js';
import { Refusal, type WriteProgress } from './write-error.js';

const { O_RDONLY } = constants;

/** Linux: names the directory without permission to read it. Node.js has no constant for it. */
const O_PATH = 0o10000000;

/** The errors of `open` with O_DIRECTORY and O_NOFOLLOW for a link: the first on Linux, the second elsewhere. */
const NOT_A_DIRECTORY = ['ENOTDIR', 'ELOOP'];

/** How to open a directory. */
interface Opening extends Access {
  /** Whether it will be listed or synced. Otherwise, permission to search it is enough. */
  readonly isReadable: boolean;
  /** Whether it and missing directories above it are created (mode 0777 less the umask). */
  readonly creates: boolean;
  /** Whether the names of directories that are created survive a power cut. */
  readonly isDurable: boolean;
}

/**
 * Opens a directory, and finds out which calls may be synchronous in it. A link at the end of the path is followed if
 * `mayFollow` allows.
 */
export function* openDirectory(
  path: string,
  opening: Opening,
  progress: WriteProgress,
): Steps<HeldDirectory> {
  const { fs, isBlocking, isReadable, creates } = opening;
  const mounts = Mounts.of(fs);
  const mayHang = mounts.mayHangSomewhere;
  const calls = callsAt(mayHang ? 'unknown' : 'disk', opening);
  const access = isReadable || process.platform !== 'linux' ? O_RDONLY : O_PATH;
  for (let links = 0; ; links += 1) {
    try {
      const opened = yield* open(path, access, calls, fs);
      if (mayHang && !isBlocking) yield* wait(mounts.ask(path));
      // The kernel knows the path of a descriptor from memory, wherever the directory is.
      const realPath = (): string => (opened.entries === path ? path : fs.readlinkSync(opened.entries));
      const { place } = mounts.kindOf(opened.stat.dev, realPath);
      return new HeldDirectory(path, opened, place, opening);
    } catch (error) {
      const isMissing = errnoOf(error) === 'ENOENT' && dirname(path) !== path;
      if (isMissing && creates) return yield* createDirectory(path, opening, progress);
      if (!NOT_A_DIRECTORY.includes(errnoOf(error) ?? '') || links === MAX_LINKS) throw error;
      const above = { ...opening, isReadable: false, creates: false };
      const parent = yield* openDirectory(dirname(path), above, progress);
      path = yield* parent.during(followLink(parent, path, error));
    }
  }
}

function* createDirectory(path: string, opening: Opening, progress: WriteProgress): Steps<HeldDirectory> {
  progress.step = 'create-directory';
  const parent = yield* openDirectory(dirname(path), opening, progress);
  return yield* parent.during(createIn(parent, basename(path), opening));
}

function* createIn(parent: HeldDirectory, name: string, { isDurable }: Opening): Steps<HeldDirectory> {
  // Another writer may have created it by now.
  yield* attempt(() => parent.calls.mkdir(parent.at(name), 0o777), ['EEXIST']);
  if (isDurable) yield* parent.sync();
  const created = yield* parent.enter(name);
  if (created) return created;
  throw new Refusal('ERR_WRITE_NO_DIRECTORY', 'a component of its path is not a directory');
}

/** Returns where the link leads that was found instead of a directory. Throws `reason` if there is no link. */
function* followLink(parent: HeldDirectory, path: string, reason: unknown): Steps<string> {
  const link = yield* wait(parent.lstat(basename(path)));
  if (!link?.isSymbolicLink()) throw reason;
  return yield* targetOf(link, path, parent);
}

/**
 * Returns where a link leads.
 * @throws {Refusal} ERR_WRITE_UNTRUSTED
 */
export function* targetOf(link: BigIntStats, path: string, parent: HeldDirectory): Steps<string> {
  if (!mayFollow(link, parent.stat)) {
    const what = `the symbolic link "${path}" belongs to another user, in a directory where every user can create links`;
    throw new Refusal('ERR_WRITE_UNTRUSTED', `${what}; remove it, or write to a directory of your own`);
  }
  const target = yield* parent.readlink(basename(path));
  if (target === undefined) {
    throw new Refusal('ERR_WRITE_CONFLICT', `another process replaced the symbolic link "${path}" meanwhile`);
  }
  // Not `resolve()`: `..` means the parent of where the directory really is.
  return isAbsolute(target) ? target : `${dirname(path)}/${target}`;
}

/** The mount point above a path, as far as it is known without following links. */
export function mountPointOf(path: string, fs: FileSystem): string {
  return Mounts.of(fs).at(path).point;
}
