import type { BigIntStats, Dirent } from 'node:fs';

import { constants } from '../core/ports/builtins.js';
import { errnoOf } from '../core/errors/errno.js';
import { PERMISSIONS } from '../core/options/mode.js';
import type { FileSystem } from '../core/ports/file-system.js';
import { isOnWindows, pathForCall, told } from '../core/ports/platform-path.js';
import { list, readlink, readProc } from '../fs/calls.js';
import { callsMayHang } from '../fs/mount-table.js';
import { attempt, callsAt, UNSUPPORTED, type Calls, type Place, type Write } from './calls.js';
import { nextSlice, wait, type Answer, type Steps } from '../core/scheduling/steps.js';
import { hasOurId } from './trust.js';
import { Refusal } from './write-error.js';

const { O_RDONLY } = constants;
const {
  O_DIRECTORY = 0,
  O_NOATIME = 0,
  O_NOFOLLOW = 0,
  O_NONBLOCK = 0,
} = constants as Partial<typeof constants>;

/** Linux: names the directory without permission to read it. Node.js has no constant for it. */
export const O_PATH = 0o10000000;

/** What its owner needs to list a directory, to enter it, and to change it. */
const USABLE = 0o700;

/** The errors of `open` with these flags for what is missing and for a link (ENOTDIR on Linux, ELOOP elsewhere). */
const NO_DIRECTORY = ['ENOENT', 'ENOTDIR', 'ELOOP'];

const MAX_CHUNK_BYTES = 2 ** 20;

/** An open directory. */
export interface OpenDirectory {
  /** Undefined on Windows, which cannot open directories. */
  readonly fd: number | undefined;
  /** Its status when it was opened. */
  readonly stat: BigIntStats;
  /** The path under which its entries are reached. */
  readonly entries: string;
}

/**
 * A directory that is held open while its entries are changed.
 *
 * On Linux its entries are reached through the descriptor (`/proc/self/fd/N/name`): the path is resolved once, so
 * renaming the directory, or replacing it by a link, redirects no write. Where there is no such path (macOS, Windows,
 * no /proc, a file system of the application), entries are reached by name, and {@link assertInPlace} detects a
 * replacement afterwards.
 */
export class HeldDirectory {
  /** As it was given; for messages. */
  readonly path: string;
  readonly stat: BigIntStats;
  readonly place: Place;
  /** The write that holds it. */
  readonly write: Write;
  /** The calls for what is in it. */
  readonly calls: Calls;
  readonly #fd: number | undefined;
  readonly #entries: string;
  /** Null while it has not been asked for. */
  #mountId: string | undefined | null = null;

  constructor(path: string, { fd, stat, entries }: OpenDirectory, place: Place, write: Write) {
    this.path = path;
    this.stat = stat;
    this.place = place;
    this.write = write;
    this.calls = callsAt(place, write);
    this.#fd = fd;
    this.#entries = entries;
  }

  /** Whether its file system is known to be local. There, what is reported as failed has not been carried out. */
  get isLocal(): boolean {
    return process.platform === 'linux' && !callsMayHang(this);
  }

  /** The path of an entry, for calls. */
  at(name: string): string | Buffer {
    return pathForCall(`${this.#entries}/${name}`);
  }

  /** The calls to read, write or list this much. */
  callsFor(bytes: number | bigint): Calls {
    return callsAt(this.place, this.write, bytes);
  }

  /** The status of an entry, without following a link; undefined if there is none. */
  lstat(name: string): Answer<BigIntStats | undefined> {
    return lstat(this.at(name), this.calls);
  }

  /** The target of a link; undefined if there is no link. */
  *readlink(name: string): Steps<string | undefined> {
    try {
      return yield* readlink(this.calls, `${this.#entries}/${name}`);
    } catch (error) {
      if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'EINVAL') return undefined;
      throw error;
    }
  }

  /** Creates a link. Returns false if that failed with one of these codes. */
  symlink(target: string, name: string, tolerated: readonly string[] = []): Steps<boolean> {
    return attempt(() => this.calls.symlink(pathForCall(target), this.at(name)), tolerated);
  }

  rename(from: string, to: string): Answer<void> {
    return this.calls.rename(this.at(from), this.at(to));
  }

  /** Removes a file or link. Returns whether there was one. */
  unlink(name: string): Steps<boolean> {
    return attempt(() => this.calls.unlink(this.at(name)), ['ENOENT']);
  }

  /** Its entries, without `.` and `..`. */
  list(): Steps<Dirent[]> {
    return list(this.callsFor(this.stat.size), `${this.#entries}/.`);
  }

  /** Opens a directory in this one, on any mount. A link is not followed: ENOTDIR or ELOOP. */
  open(name: string, access: number, calls: Calls): Steps<OpenDirectory> {
    return open(`${this.#entries}/${name}`, access, calls, this.write.fs);
  }

  /** Opens a directory in this one. Undefined if there is none, or if it is a link, which is not followed. */
  *enter(name: string): Steps<HeldDirectory | undefined> {
    try {
      const opened = yield* this.open(name, O_RDONLY, this.calls);
      return new HeldDirectory(`${this.path}/${name}`, opened, this.place, this.write);
    } catch (error) {
      if (NO_DIRECTORY.includes(errnoOf(error) ?? '')) return undefined;
      throw error;
    }
  }

  /**
   * Creates a directory in this one and opens it; one that exists, if EEXIST is tolerated. Undefined as in `enter`.
   * @param mode less the umask, but its owner can always use it.
   */
  *create(name: string, mode: number, tolerated: readonly string[] = []): Steps<HeldDirectory | undefined> {
    const isNew = yield* attempt(() => this.calls.mkdir(this.at(name), mode), tolerated);
    try {
      const created = yield* this.enter(name);
      if (created && isNew) yield* created.orClose(created.#makeUsable());
      return created;
    } catch (error) {
      if (!isNew || errnoOf(error) !== 'EACCES' || process.platform !== 'linux') throw error;
    }
    // The umask may deny its owner to read it. By a descriptor, so that no other file gets the mode.
    const { fd, stat, entries } = yield* this.open(name, O_PATH, this.calls);
    const named = new HeldDirectory(`${this.path}/${name}`, { fd, stat, entries }, this.place, this.write);
    const permissions = Number(stat.mode) & PERMISSIONS;
    const usable = permissions | USABLE;
    // Only if it is needed: who is not in its group loses its set-group bit.
    const chmod = (): Answer<void> =>
      usable === permissions ? undefined : this.calls.chmod(entries, usable);
    yield* named.during(attempt(chmod, []));
    return yield* this.enter(name);
  }

  /**
   * Whether it is on the same mount as another directory; undefined where the kernel does not say. A mount is known by
   * its id: two mounts of one file system have the same device number, and one Btrfs file system has many.
   */
  isOnMountOf(other: HeldDirectory): boolean | undefined {
    const [one, another] = [this.#mount(), other.#mount()];
    if (one !== undefined && another !== undefined) return one === another;
    return this.stat.dev === other.stat.dev ? undefined : false;
  }

  #mount(): string | undefined {
    if (this.#mountId !== null) return this.#mountId;
    // Elsewhere the number of the descriptor may be that of another process.
    const isKnown = this.#fd !== undefined && this.#entries !== this.path;
    const about = isKnown ? readProc(this.write.fs, `/proc/self/fdinfo/${this.#fd}`) : undefined;
    return (this.#mountId = /^mnt_id:\s*(\d+)$/m.exec(about ?? '')?.[1]);
  }

  /**
   * Whether an entry belongs to the user of this process, although its id may stand for others, too: only the owner may
   * open it without setting its access time. What cannot be opened, as a link, does not count.
   */
  *isOurs(name: string, stat: BigIntStats): Steps<boolean> {
    if (!hasOurId(stat) || O_NOATIME === 0) return false;
    try {
      const access = O_RDONLY | O_NOATIME | O_NONBLOCK | O_NOFOLLOW;
      const fd = yield* wait(this.calls.open(this.at(name), access));
      try {
        return isSame(stat, yield* wait(this.calls.fstat(fd, { bigint: true })));
      } finally {
        yield* wait(this.calls.close(fd));
      }
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
      return false;
    }
  }

  /** Whether a file in it, of this size, holds exactly these bytes. A link in its place is not followed. */
  *holds(name: string, { size }: BigIntStats, bytes: Uint8Array): Steps<boolean> {
    if (size !== BigInt(bytes.byteLength)) return false;
    const { read } = this.callsFor(size);
    // A pipe may have taken the place of the file: opening it must not block.
    const fd = yield* wait(this.calls.open(this.at(name), O_RDONLY | O_NONBLOCK | O_NOFOLLOW));
    try {
      const chunk = Buffer.allocUnsafe(Math.min(MAX_CHUNK_BYTES, bytes.byteLength + 1));
      for (let done = 0; ;) {
        const count = yield* wait(read(fd, chunk, 0, chunk.length, null));
        if (!chunk.subarray(0, count).equals(bytes.subarray(done, done + count))) return false;
        done += count;
        // Less than was asked for is read only at the end.
        if (count < chunk.length) return done === bytes.byteLength;
      }
    } finally {
      yield* wait(this.calls.close(fd));
    }
  }

  /**
   * Where entries are reached by name, checks that the name still leads here. A replacement between this call and the
   * next one goes unnoticed.
   * @throws {Refusal} ERR_WRITE_CONFLICT
   */
  *assertInPlace(): Steps<void> {
    if (this.#entries !== this.path) return;
    const stat = yield* wait(lstat(pathForCall(this.path), this.calls));
    if (stat && isSame(stat, this.stat)) return;
    const what = `another process moved or replaced the directory "${told(this.path)}" meanwhile`;
    throw new Refusal('ERR_WRITE_CONFLICT', what);
  }

  /** Sets the permissions of the open directory, whatever is at its path now. */
  *setMode(mode: number): Steps<void> {
    if (this.#fd !== undefined) yield* wait(this.calls.fchmod(this.#fd, mode));
  }

  /** Makes the names in it survive a power cut, if that is wanted and the system can. */
  sync(): Steps<unknown> {
    const fd = this.#fd;
    if (fd === undefined || this.write.durability !== 'full') return wait(undefined);
    return attempt(() => this.calls.fsync(fd), UNSUPPORTED);
  }

  /** Does the work, and closes the directory if that fails. */
  *orClose<T>(work: Steps<T>): Steps<T> {
    try {
      return yield* work;
    } catch (error) {
      yield* wait(this.close());
      throw error;
    }
  }

  *#makeUsable(): Steps<void> {
    const [fd, permissions] = [this.#fd, Number(this.stat.mode) & PERMISSIONS];
    if (fd === undefined || (permissions & USABLE) === USABLE) return;
    yield* attempt(() => this.calls.fchmod(fd, permissions | USABLE), UNSUPPORTED);
  }

  /** Does the work, then closes the directory. */
  *during<T>(work: Steps<T>): Steps<T> {
    try {
      return yield* work;
    } finally {
      yield* wait(this.close());
    }
  }

  /** Ignores errors: nothing was written through this descriptor. */
  close(): Answer<void> {
    try {
      const closing = this.#fd === undefined ? undefined : this.calls.close(this.#fd);
      return closing instanceof Promise ? closing.catch(() => undefined) : closing;
    } catch {
      return undefined;
    }
  }

  /** Does the work for every item, even if some fail, and then throws the first failure. */
  *forEach<T>(list: readonly T[], work: (item: T) => Steps<unknown>): Steps<void> {
    const failures: unknown[] = [];
    for (const item of list) {
      try {
        yield* work(item);
      } catch (error) {
        failures.push(error);
      }
      yield* this.pause();
    }
    if (failures.length > 0) throw failures[0];
  }

  /** Gives the event loop a turn if this one is spent. Call it after each of many items. */
  pause(): Steps<void> {
    return this.write.isBlocking ? wait(undefined) : nextSlice();
  }
}

/**
 * Whether both describe the same file or directory. The birth time is not compared: on some systems it is the ctime.
 */
export function isSame(one: BigIntStats, other: BigIntStats): boolean {
  return one.dev === other.dev && one.ino === other.ino;
}

function lstat(path: string | Buffer, calls: Calls): Answer<BigIntStats | undefined> {
  const answer = calls.lstat(path, { bigint: true, throwIfNoEntry: false });
  if (!(answer instanceof Promise)) return answer;
  return answer.catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  });
}

/** Opens a directory at this path. A link is not followed: ENOTDIR or ELOOP. */
export function* open(path: string, access: number, calls: Calls, fs: FileSystem): Steps<OpenDirectory> {
  if (isOnWindows()) {
    const stat = yield* wait(lstat(pathForCall(path), calls));
    if (stat?.isDirectory()) return { fd: undefined, stat, entries: path };
    const [code, what] = stat ? ['ENOTDIR', 'not a directory'] : ['ENOENT', 'no such directory'];
    throw Object.assign(new Error(`${what}: "${told(path)}"`), { code });
  }
  const fd = yield* wait(calls.open(pathForCall(path), access | O_DIRECTORY | O_NOFOLLOW));
  try {
    const stat = yield* wait(calls.fstat(fd, { bigint: true }));
    const entries = `/proc/self/fd/${fd}`;
    const isReachable = reachableByDescriptor.has(fs) || (yield* leadsTo(entries, stat, calls));
    if (isReachable) reachableByDescriptor.add(fs);
    return { fd, stat, entries: isReachable ? entries : path };
  } catch (error) {
    yield* wait(calls.close(fd));
    throw error;
  }
}

/** File systems whose entries can be reached through descriptors. This never changes. */
const reachableByDescriptor = new WeakSet<FileSystem>();

/**
 * False without /proc, with the /proc of another PID namespace, under `node --permission`, and if `fs` is not the
 * kernel's.
 */
function* leadsTo(path: string, stat: BigIntStats, calls: Calls): Steps<boolean> {
  if (process.platform !== 'linux') return false;
  try {
    const found = yield* wait(lstat(`${path}/.`, calls));
    return found !== undefined && isSame(found, stat);
  } catch {
    return false;
  }
}
