import type { BigIntStats } from 'node:fs';

import { constants } from '../core/ports/builtins.js';
import { basename, dirname, told } from '../core/ports/platform-path.js';
import { errnoOf } from '../core/errors/errno.js';
import { MAX_LINKS } from '../core/ports/file-system.js';
import { readlink } from '../fs/calls.js';
import { linkKind } from '../fs/magic-link.js';
import { Mounts } from '../fs/mounts.js';
import { callsAt, type Write } from './calls.js';
import { HeldDirectory, O_PATH, open, type OpenDirectory } from './held-directory.js';
import { wait, type Steps } from '../core/scheduling/steps.js';
import { mayFollow } from './trust.js';
import { Refusal } from './write-error.js';

const { O_RDONLY } = constants;

/** The errors of `open` with O_DIRECTORY and O_NOFOLLOW for a link: the first on Linux, the second elsewhere. */
const NOT_A_DIRECTORY = ['ENOTDIR', 'ELOOP'];

/** What was met on the way to one directory. */
interface Detours {
  /** How many links were followed. */
  links: number;
  /** Whether one of them was magic (fs/magic-link.ts). */
  isMagic: boolean;
}

/** Paths through the links of a process, behind which a call may hang although the mount table shows no such mount. */
const OF_PROCESS = /\/(?:self|\d+)\/(?:task\/\d+\/)?(?:cwd|root|fd)(?:\/|$)/;

/**
 * Opens a directory, and finds out which calls may be synchronous in it. Links in its path are followed if `mayFollow`
 * allows: the whole path is opened first, and if that led through a link, it is opened again component by component.
 * A magic link is followed by the kernel, because its text is not a path here.
 * Where entries are reached by name, only a link at the end is noticed.
 */
export function* openDirectory(
  path: string,
  write: Write,
  isSynced = write.durability === 'full',
  detours: Detours = { links: 0, isMagic: false },
): Steps<HeldDirectory> {
  const { fs } = write;
  // What is not synced need not be readable: permission to search it is enough.
  const access = isSynced || process.platform !== 'linux' ? O_RDONLY : O_PATH;
  for (;;) {
    // Of each path, because a link may lead to one of a process.
    const mayHang = Mounts.of(fs).mayHangSomewhere || OF_PROCESS.test(path);
    const calls = callsAt(mayHang ? 'unknown' : 'disk', write);
    try {
      const opened = yield* open(path, access, calls, fs);
      const { directory, realPath } = yield* hold(path, opened, write, detours);
      if (realPath === path || dirname(path) === path) return directory;
      yield* wait(directory.close());
    } catch (error) {
      const isMissing = errnoOf(error) === 'ENOENT' && dirname(path) !== path;
      if (isMissing && write.createDirectory) return yield* createDirectory(path, write);
      if (!isNoDirectory(error)) throw error;
    }
    const parent = yield* openDirectory(dirname(path), write, false, detours);
    const next = yield* parent.during(
      enterOrFollow(parent, path, detours, (name) => parent.open(name, access, calls)),
    );
    if (typeof next !== 'string') return (yield* hold(path, next, write, detours)).directory;
    path = next;
  }
}

/** Opens an entry; for a link, returns where it leads. */
function* enterOrFollow(
  parent: HeldDirectory,
  path: string,
  detours: Detours,
  opening: (name: string) => Steps<OpenDirectory>,
): Steps<OpenDirectory | string> {
  const name = basename(path);
  try {
    return yield* opening(name);
  } catch (error) {
    if (!isNoDirectory(error)) throw error;
    const link = yield* wait(parent.lstat(name));
    if (!link?.isSymbolicLink()) throw error;
    if (linkKind(name, link) === 'magic') {
      detours.isMagic = true;
      return yield* opening(`${name}/.`);
    }
    if (detours.links === MAX_LINKS) {
      throw new Refusal(
        'ERR_WRITE_NO_DIRECTORY',
        `its path leads through more than ${MAX_LINKS} symbolic links`,
      );
    }
    detours.links += 1;
    return yield* targetOf(link, path, parent);
  }
}

/** Finds out where a directory is. If that fails, closes it. */
function* hold(
  path: string,
  opened: OpenDirectory,
  write: Write,
  { isMagic }: Detours,
): Steps<{ readonly directory: HeldDirectory; readonly realPath: string }> {
  const { fs, isBlocking } = write;
  try {
    const { entries } = opened;
    // The kernel knows the path of a descriptor from memory, wherever the directory is.
    const realPath = entries === path ? path : yield* readlink(callsAt('memory', write), entries);
    const mounts = Mounts.of(fs);
    if (mounts.mayHangSomewhere && !isBlocking) yield* wait(mounts.ask(path));
    // Behind a magic link, that path is one in another root.
    const { place } = mounts.kindOf(opened.stat.dev, isMagic ? `${path}/.` : realPath);
    return { directory: new HeldDirectory(path, opened, place, write), realPath };
  } catch (error) {
    if (opened.fd !== undefined) yield* wait(callsAt('unknown', write).close(opened.fd));
    throw error;
  }
}

function isNoDirectory(error: unknown): boolean {
  return NOT_A_DIRECTORY.includes(errnoOf(error) ?? '');
}

function* createDirectory(path: string, write: Write): Steps<HeldDirectory> {
  write.step = 'create-directory';
  const parent = yield* openDirectory(dirname(path), write);
  return yield* parent.during(createIn(parent, basename(path)));
}

function* createIn(parent: HeldDirectory, name: string): Steps<HeldDirectory> {
  // Another writer may have created it by now.
  const created = yield* parent.create(name, 0o777, ['EEXIST']);
  yield* created ? created.orClose(parent.sync()) : parent.sync();
  if (created) return created;
  throw new Refusal('ERR_WRITE_NO_DIRECTORY', 'there is a file where its path needs a directory');
}

/**
 * Returns where a link leads.
 * @throws {Refusal} ERR_WRITE_UNTRUSTED
 */
export function* targetOf(link: BigIntStats, path: string, parent: HeldDirectory): Steps<string> {
  if (!mayFollow(link, parent.stat)) {
    const what = `the symbolic link "${told(path)}" belongs to another user, in a directory where every user can create links`;
    throw new Refusal('ERR_WRITE_UNTRUSTED', `${what}; remove it, or write to a directory of your own`);
  }
  const target = yield* parent.readlink(basename(path));
  if (target === undefined) {
    throw new Refusal(
      'ERR_WRITE_CONFLICT',
      `another process replaced the symbolic link "${told(path)}" meanwhile`,
    );
  }
  if (linkKind(basename(path), link) === 'magic') {
    const what = 'it is a link of /proc to an open file or another object, which cannot be replaced there';
    throw new Refusal('ERR_WRITE_NOT_FILE', `${what}; use the path of the file`);
  }
  // Not `resolve()`: `..` means the parent of where the directory really is.
  return target.startsWith('/') ? target : `${dirname(path)}/${target}`;
}
