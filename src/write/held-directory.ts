import { constants, type BigIntStats } from 'node:fs';
import { basename, dirname, isAbsolute } from 'node:path';

import { errnoOf } from '../core/errno.js';
import { MAX_LINKS, type FileSystem, type FileSystemCalls } from '../core/file-system.js';
import { call, type Effects } from '../fs/effects.js';
import type { SynchronousCalls } from '../fs/locality.js';
import { ifSupported, ifExists } from './tolerated-failures.js';
import { mayFollow } from './trust.js';
import { Refusal } from './write-progress.js';

const { O_RDONLY } = constants;
const { O_DIRECTORY = 0, O_NOFOLLOW = 0 } = constants as Partial<typeof constants>;

/** Linux: names the directory without permission to read it. Node.js has no constant for it. */
const O_PATH = 0o10000000;

/** Windows cannot open directories. */
const CAN_OPEN = process.platform !== 'win32';

/** What `open` with O_DIRECTORY and O_NOFOLLOW says of a link: the first on Linux, the second elsewhere. */
const NOT_A_DIRECTORY: ReadonlySet<string | undefined> = new Set(['ENOTDIR', 'ELOOP']);

/**
 * A directory that is held open while its entries are changed.
 *
 * On Linux its entries are reached through the descriptor (`/proc/self/fd/N/name`): the path is resolved once, so
 * renaming the directory, or replacing it by a link, redirects no write. Where there is no such path (macOS,
 * Windows, no /proc, a file system of the application), entries are reached by name, and {@link assertInPlace}
 * detects a replacement afterwards.
 */
export class HeldDirectory {
  /** As it was given; for messages. */
  readonly path: string;
  readonly #fd: number | undefined;
  readonly #entries: string;

  /** What it was when it was opened, or the call that determines it. */
  #stat: BigIntStats | (() => BigIntStats);

  private constructor(
    path: string,
    stat: BigIntStats | (() => BigIntStats),
    fd: number | undefined,
    entries: string,
  ) {
    this.path = path;
    this.#stat = stat;
    this.#fd = fd;
    this.#entries = entries;
  }

  /**
   * Opens a directory. A link at the end of the path is followed if `mayFollow` allows.
   * @param options.readable false: the directory may be one that cannot be listed or synced, only searched.
   * @param options.isProven entries are known to be reachable through descriptors.
   */
  static *open(path: string, { readable = true, isProven = false } = {}): Effects<HeldDirectory> {
    const access = readable || process.platform !== 'linux' ? O_RDONLY : O_PATH;
    let place = path;
    for (let links = 0; ; links += 1) {
      try {
        return yield* HeldDirectory.#hold(place, place, access, isProven);
      } catch (error) {
        if (!NOT_A_DIRECTORY.has(errnoOf(error)) || links === MAX_LINKS) throw error;
        place = yield* followLink(place, error);
      }
    }
  }

  /**
   * Opens a directory at once, if it is no link and its entries are known to be reachable through descriptors. The caller
   * closes it.
   */
  static openNow(path: string, calls: FileSystemCalls, readable: boolean): HeldDirectory {
    const fd = calls.open(path, (readable ? O_RDONLY : O_PATH) | O_DIRECTORY | O_NOFOLLOW);
    // What most writes do not need is not asked for.
    return new HeldDirectory(path, () => calls.fstat(fd), fd, `/proc/self/fd/${fd}`);
  }

  /** Opens a directory in this one. A link is not followed: ENOTDIR or ELOOP. */
  enter(name: string): Effects<HeldDirectory> {
    return HeldDirectory.#hold(this.at(name), `${this.path}/${name}`, O_RDONLY, this.isByDescriptor);
  }

  /** Opens the directory at `place`, which its users know as `path`. */
  static *#hold(place: string, path: string, access: number, isProven: boolean): Effects<HeldDirectory> {
    if (!CAN_OPEN) return new HeldDirectory(path, yield* call('lstat', place), undefined, place);
    const fd = yield* call('open', place, access | O_DIRECTORY | O_NOFOLLOW);
    try {
      const stat = yield* call('fstat', fd);
      const viaDescriptor = `/proc/self/fd/${fd}`;
      const isByDescriptor = isProven || (yield* leadsTo(viaDescriptor, stat));
      return new HeldDirectory(path, stat, fd, isByDescriptor ? viaDescriptor : place);
    } catch (error) {
      yield* call('close', fd);
      throw error;
    }
  }

  /** What it was when it was opened. */
  get stat(): BigIntStats {
    if (typeof this.#stat === 'function') this.#stat = this.#stat();
    return this.#stat;
  }

  /** Whether entries are reached through the descriptor. */
  get isByDescriptor(): boolean {
    return this.#entries !== this.path;
  }

  /** Whether this is the directory that `stat` describes. */
  is({ dev, ino }: BigIntStats): boolean {
    return this.stat.dev === dev && this.stat.ino === ino;
  }

  /** The path of an entry, for calls. */
  at(name: string): string {
    return `${this.#entries}/${name}`;
  }

  /**
   * Where entries are reached by name, checks that the name still leads here. What happens between this and the next
   * call goes unnoticed.
   * @throws {Refusal} ERR_WRITE_CONFLICT
   */
  *assertInPlace(): Effects<void> {
    if (this.isByDescriptor) return;
    const stat = yield* ifExists(call('lstat', this.path));
    if (stat && this.is(stat)) return;
    const what = `another process moved or replaced the directory "${this.path}" meanwhile`;
    throw new Refusal('ERR_WRITE_CONFLICT', what);
  }

  /** Sets its permissions, whatever stands at its path now. */
  *setMode(mode: number): Effects<void> {
    if (this.#fd === undefined) yield* call('chmod', this.path, mode);
    else yield* call('fchmod', this.#fd, mode);
  }

  /** Makes the names in it survive a power cut, where the system has such a thing. */
  *sync(): Effects<void> {
    if (this.#fd !== undefined) yield* ifSupported(call('fsync', this.#fd), true);
  }

  closeNow(calls: FileSystemCalls): void {
    if (this.#fd === undefined) return;
    try {
      calls.close(this.#fd);
    } catch {
      // As in `close()`.
    }
  }

  *close(): Effects<void> {
    if (this.#fd === undefined) return;
    try {
      yield* call('close', this.#fd);
    } catch {
      // Nothing was written through this descriptor.
    }
  }
}

/** Not without /proc, with that of another PID namespace, under `node --permission`, or on another file system port. */
function* leadsTo(path: string, { dev, ino }: BigIntStats): Effects<boolean> {
  if (process.platform !== 'linux') return false;
  try {
    const found = yield* call('stat', path);
    return found.dev === dev && found.ino === ino;
  } catch {
    return false;
  }
}

/** Where the link at a path leads. `reason` is thrown when there is none. */
function* followLink(path: string, reason: unknown): Effects<string> {
  const parent = yield* HeldDirectory.open(dirname(path), { readable: false });
  try {
    const link = yield* call('lstat', parent.at(basename(path)));
    if (!link.isSymbolicLink()) throw reason;
    if (!mayFollow(link, parent.stat)) throw untrustedLink(path);
    const target = yield* call('readlink', parent.at(basename(path)));
    // Not `resolve()`: `..` means the parent of where the directory really is.
    return isAbsolute(target) ? target : `${dirname(path)}/${target}`;
  } finally {
    yield* parent.close();
  }
}

/** File systems on which entries can be reached through descriptors. It never changes, and is checked once for each. */
const proven = new WeakSet<object>();

/** Whether this is known of a file system. */
export function areEntriesByDescriptor(fs: FileSystem): boolean {
  return proven.has(fs);
}

/** Opens the directory that a write works in; see {@link HeldDirectory.open}. */
export function* enterDirectory(
  path: string,
  calls: SynchronousCalls,
  { readable = true } = {},
): Effects<HeldDirectory> {
  yield* calls.approach(path);
  const directory = yield* HeldDirectory.open(path, { readable, isProven: proven.has(calls.fs) });
  if (directory.isByDescriptor) proven.add(calls.fs);
  yield* calls.enter(directory.stat, directory.at('.'));
  return directory;
}

/** Why a link was not followed. */
export function untrustedLink(path: string): Refusal {
  const what = `the symbolic link "${path}" belongs to another user, in a directory where every user can create links`;
  return new Refusal('ERR_WRITE_UNTRUSTED', `${what}; remove it, or write to a directory of your own`);
}

/**
 * Opens a directory; creates it and missing ones above it (mode 0777 less the umask).
 * @param options.durable the new names survive a power cut.
 */
export function* makeDirectories(
  path: string,
  options: { readonly readable: boolean; readonly durable: boolean },
): Effects<HeldDirectory> {
  try {
    return yield* HeldDirectory.open(path, options);
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT' || dirname(path) === path) throw error;
  }
  const parent = yield* makeDirectories(dirname(path), options);
  try {
    yield* makeDirectory(parent.at(basename(path)));
    if (options.durable) yield* parent.sync();
    return yield* parent.enter(basename(path));
  } finally {
    yield* parent.close();
  }
}

function* makeDirectory(path: string): Effects<void> {
  try {
    yield* call('mkdir', path, 0o777);
  } catch (error) {
    // Another writer was quicker.
    if (errnoOf(error) !== 'EEXIST') throw error;
  }
}
