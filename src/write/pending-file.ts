/** A file that is being made under a name nobody looks for. */
import { constants, type BigIntStats } from 'node:fs';

import { errnoOf } from '../core/errors.js';
import { call, type Effects } from '../fs/effects.js';
import type { WriteProgress } from './write-progress.js';

/** How much has reached the disk when a write is reported as done. */
export type Durability = 'full' | 'file' | 'none';

/** User and group ids. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

const isId = (value: unknown): boolean => Number.isInteger(value) && (value as number) >= 0;

/** How an owner is recognised. */
export function isOwner(value: unknown): value is Owner {
  if (typeof value !== 'object' || value === null || !('uid' in value) || !('gid' in value)) return false;
  return isId(value.uid) && isId(value.gid);
}

/** How permission bits are recognised. */
export function isMode(value: unknown): value is number {
  return isId(value) && (value as number) <= 0o7777;
}

/** What a finished file is to look like. */
export interface FileAttributes {
  readonly mode: number;
  readonly owner?: Owner | undefined;
  /** What the caller asked for and has to get; anything else is set as far as possible. */
  readonly required: { readonly mode: boolean; readonly owner: boolean };
}

/** Nobody else may read it before it has its mode. */
const MODE_WHILE_PENDING = 0o600;

// Links are never followed; the flag does not exist on Windows, where the constant is missing.
const CREATE =
  constants.O_WRONLY |
  constants.O_CREAT |
  constants.O_EXCL |
  ((constants as Partial<typeof constants>).O_NOFOLLOW ?? 0);

/** Linux writes at most 2 GiB at a time; with less an abort is noticed sooner, at no cost. */
const LARGEST_WRITE_BYTES = 8 * 2 ** 20;

/** A random name is taken by chance never, by a broken source of chance always. */
const MAX_NAMES = 10;

/** What a file system says that cannot do what was asked, rather than failed at it. */
const UNSUPPORTED: ReadonlySet<string | undefined> = new Set([
  'EPERM',
  'EINVAL',
  'ENOTSUP',
  'EOPNOTSUPP',
  'ENOSYS',
]);

/** A file from its creation to the moment it is whole, on disk and closed. */
export class PendingFile {
  readonly path: string;
  readonly #progress: WriteProgress;
  #fd: number | undefined;
  #written = 0;

  private constructor(path: string, fd: number, progress: WriteProgress) {
    this.path = path;
    this.#fd = fd;
    this.#progress = progress;
  }

  /** Creates it. `name` gives another path each time, if it can, in case one is taken. */
  static *create(name: () => string, progress: WriteProgress): Effects<PendingFile> {
    progress.step = 'create';
    for (let attempt = 1; ; attempt += 1) {
      const path = name();
      try {
        return new PendingFile(path, yield* call('open', path, CREATE, MODE_WHILE_PENDING), progress);
      } catch (error) {
        if (errnoOf(error) !== 'EEXIST') {
          // A server may have created it and then failed to say so.
          yield* removeIfThere(path);
          throw error;
        }
        if (attempt === MAX_NAMES) throw error;
      }
    }
  }

  /** Appends all of the bytes: a full disk is reported by a short write first, and by an error only then. */
  *write(bytes: Uint8Array): Effects<void> {
    this.#progress.step = 'write';
    for (let done = 0; done < bytes.byteLength;) {
      const length = Math.min(bytes.byteLength - done, LARGEST_WRITE_BYTES);
      const count = yield* call('write', this.#open, bytes, done, length);
      if (count <= 0) throw new Error('the system wrote nothing and gave no reason');
      done += count;
      this.#written += count;
    }
  }

  /** How many bytes were written. */
  get written(): number {
    return this.#written;
  }

  /** Shows that its owner is alive. */
  *touch(): Effects<void> {
    yield* call('fchmod', this.#open, MODE_WHILE_PENDING);
  }

  /** Makes it what it is to be, and closes it. */
  *finish(attributes: FileAttributes, durability: Durability): Effects<BigIntStats> {
    const { mode, owner, required } = attributes;
    const progress = this.#progress;
    const fd = this.#open;

    progress.step = 'verify';
    const made = yield* call('fstat', fd);
    if (made.size !== BigInt(this.#written)) {
      throw new Error(`${this.#written} bytes were written, but the file has ${made.size}`);
    }
    // The owner first: giving a file away clears the set-id bits of its mode.
    let given = true;
    if (owner && (made.uid !== BigInt(owner.uid) || made.gid !== BigInt(owner.gid))) {
      progress.step = 'chown';
      given = yield* chown(fd, owner, required.owner);
    }
    const wanted = given ? mode : mode & 0o777;
    if ((made.mode & 0o7777n) !== BigInt(wanted)) {
      progress.step = 'chmod';
      yield* ifSupported(call('fchmod', fd, wanted), !required.mode);
    }
    // Without it, a rename can reach the disk before the data: after a power cut the file is there, and empty.
    if (durability !== 'none') {
      progress.step = 'sync';
      yield* ifSupported(call('fsync', fd), true);
    }
    // A network file system may report only now that the disk is full.
    progress.step = 'close';
    this.#fd = undefined;
    yield* call('close', fd);
    return made;
  }

  /** Removes it, as far as that is possible. */
  *discard(): Effects<void> {
    const fd = this.#fd;
    this.#fd = undefined;
    if (fd !== undefined) {
      try {
        yield* call('close', fd);
      } catch {
        // It is thrown away.
      }
    }
    yield* removeIfThere(this.path);
  }

  get #open(): number {
    if (this.#fd === undefined) throw new Error('The file is finished');
    return this.#fd;
  }
}

/** Whether the file has that owner now. The group alone may still be ours to give. */
function* chown(fd: number, { uid, gid }: Owner, required: boolean): Effects<boolean> {
  if (yield* ifSupported(call('fchown', fd, uid, gid), !required)) return true;
  yield* ifSupported(call('fchown', fd, KEEP_ID, gid), true);
  return false;
}

/** `chown(2)`: leave this one as it is. */
const KEEP_ID = -1;

/** Makes sure that the names in a directory are on the disk; not every system has such a thing. */
export function* syncDirectory(fd: number): Effects<void> {
  yield* ifSupported(call('fsync', fd), true);
}

/** Runs a call; false when the file system cannot do such a thing and that is `tolerable`. */
function* ifSupported(steps: Effects<void>, tolerable: boolean): Effects<boolean> {
  try {
    yield* steps;
    return true;
  } catch (error) {
    if (tolerable && UNSUPPORTED.has(errnoOf(error))) return false;
    throw error;
  }
}

/** Removes a file or link, as far as that is possible. */
export function* removeIfThere(path: string): Effects<void> {
  try {
    yield* call('unlink', path);
  } catch {
    // It is gone, or the next write to this directory sweeps it away.
  }
}
