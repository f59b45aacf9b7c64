import { constants, type BigIntStats } from 'node:fs';

import { errnoOf } from '../core/errno.js';
import type { FileSystemCalls } from '../core/file-system.js';
import { call, type Effects } from '../fs/effects.js';
import { PERMISSIONS } from '../fs/file-identity.js';
import type { HeldDirectory } from './held-directory.js';
import { hasOwner, type FileAttributes, type Owner } from './file-attributes.js';
import { removeUnfinished } from './temporary-name.js';
import { ifSupported } from './tolerated-failures.js';
import { withoutGroup } from './trust.js';
import type { WriteProgress } from './write-progress.js';

/** How much has reached the disk when a write is reported as done. */
export type Durability = 'full' | 'file' | 'none';

/** No other user can open the file before it is complete. */
export const MODE_WHILE_PENDING = 0o600;

/**
 * Whether a new file most likely has these attributes: in a directory with the set-group-id bit it has another group.
 */
export function isAsCreated({ mode, owner }: FileAttributes): boolean {
  const isOurs = owner?.uid === process.geteuid?.() && owner?.gid === process.getegid?.();
  return mode === MODE_WHILE_PENDING && (!owner || isOurs);
}

const { O_NOFOLLOW = 0, O_SYNC = 0 } = constants as Partial<typeof constants>;
const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | O_NOFOLLOW;

/** How to open a file that is created. @param syncs each write reaches the disk before it returns. */
export function creationFlags(syncs: boolean): number {
  return syncs ? CREATE | O_SYNC : CREATE;
}

/** Linux writes at most 2 GiB at a time. A smaller limit costs nothing and lets an abort take effect sooner. */
export const MAX_WRITE_BYTES = 8 * 2 ** 20;

/** How many names are tried: a random one is never taken, unless the source of randomness is broken. */
export const MAX_NAMES = 10;

/** A file from its creation under a temporary name until it is complete, on disk and closed. */
export class PendingFile {
  /** Its path, for calls. */
  readonly path: string;
  readonly #progress: WriteProgress;
  #fd: number | undefined;
  #written = 0;
  /** Whether all that was written to it, and every change of its attributes, is on disk. */
  #isSynced: boolean;

  /**
   * @param fd its descriptor, which the file closes.
   * @param isSynced each write reaches the disk before it returns.
   */
  constructor(path: string, fd: number, progress: WriteProgress, isSynced: boolean) {
    this.path = path;
    this.#fd = fd;
    this.#progress = progress;
    this.#isSynced = isSynced;
  }

  /**
   * Creates it. `name` is called again when a name is taken.
   * @param options.mode the permissions it is created with, less the umask.
   * @param options.syncs each write reaches the disk before it returns, which saves the call to sync a single one.
   */
  static *create(
    directory: HeldDirectory,
    name: () => string,
    progress: WriteProgress,
    { mode = MODE_WHILE_PENDING, syncs = false } = {},
  ): Effects<PendingFile> {
    progress.step = 'create';
    for (let attempt = 1; ; attempt += 1) {
      const path = directory.at(name());
      try {
        const fd = yield* call('open', path, creationFlags(syncs), mode);
        return new PendingFile(path, fd, progress, syncs);
      } catch (error) {
        if (errnoOf(error) !== 'EEXIST') {
          // A network file system may create the file and still report an error.
          yield* removeUnfinished(path);
          throw error;
        }
        if (attempt === MAX_NAMES) throw error;
      }
    }
  }

  /** Appends all of the bytes. A full disk shows as a short write first, and as an error only at the next one. */
  *write(bytes: Uint8Array): Effects<void> {
    this.#progress.step = 'write';
    for (let done = 0; done < bytes.byteLength;) {
      const length = Math.min(bytes.byteLength - done, MAX_WRITE_BYTES);
      const count = yield* call('write', this.#open, bytes, done, length);
      if (count <= 0) throw new Error('the system wrote nothing and gave no reason');
      done += count;
      this.#written += count;
    }
  }

  /** Bytes have been written to its descriptor. */
  addWritten(count: number): void {
    this.#written += count;
  }

  closeNow(calls: FileSystemCalls): void {
    const fd = this.#open;
    this.#progress.step = 'close';
    this.#fd = undefined;
    calls.close(fd);
  }

  /** How many bytes were written. */
  get written(): number {
    return this.#written;
  }

  /** The user to whom it belongs now. */
  *owner(): Effects<bigint> {
    this.#progress.step = 'verify';
    return (yield* call('fstat', this.#open)).uid;
  }

  /** Updates its ctime, which shows other writers that its owner is alive. */
  *touch(): Effects<void> {
    yield* call('fchmod', this.#open, MODE_WHILE_PENDING);
  }

  /** Syncs it, where the file system can. */
  *sync(): Effects<void> {
    this.#progress.step = 'sync';
    yield* ifSupported(call('fsync', this.#open), true);
  }

  /** Sets its attributes, syncs and closes it. */
  *finish({ mode, owner, required }: FileAttributes, durability: Durability): Effects<BigIntStats> {
    const progress = this.#progress;
    const fd = this.#open;

    progress.step = 'verify';
    const created = yield* call('fstat', fd);
    if (created.size !== BigInt(this.#written)) {
      throw new Error(`${this.#written} bytes were written, but the file has ${created.size}`);
    }
    // The owner first: changing it clears the set-id bits of the mode.
    let wanted = mode;
    if (owner && !hasOwner(owner, created)) {
      progress.step = 'chown';
      this.#isSynced = false;
      const kept = yield* chown(fd, owner, required.owner);
      // Set-id bits are for that owner, and the group bits for that group.
      if (kept !== 'both') wanted &= 0o777;
      const hasGroup = kept !== 'neither' || created.gid === BigInt(owner.gid);
      if (!hasGroup && !required.mode) wanted = withoutGroup(wanted);
    }
    if ((Number(created.mode) & PERMISSIONS) !== wanted) {
      progress.step = 'chmod';
      this.#isSynced = false;
      yield* ifSupported(call('fchmod', fd, wanted), !required.mode);
    }
    // Otherwise the rename can reach the disk before the data: after a power cut the file is there, and empty.
    if (durability !== 'none' && !this.#isSynced) yield* this.sync();
    // A network file system may report only now that the disk is full.
    progress.step = 'close';
    this.#fd = undefined;
    yield* call('close', fd);
    return created;
  }

  /** Removes it; if that is not possible now, a later sweep does. Returns whether it was there, and no longer is. */
  *discard(): Effects<boolean> {
    const fd = this.#fd;
    this.#fd = undefined;
    if (fd !== undefined) {
      try {
        yield* call('close', fd);
      } catch {
        // The file is discarded.
      }
    }
    return yield* removeUnfinished(this.path);
  }

  get #open(): number {
    if (this.#fd === undefined) throw new Error('The file is finished');
    return this.#fd;
  }
}

/** Which of the two the file has now. A process that may not give the file away may still set its group. */
function* chown(fd: number, { uid, gid }: Owner, required: boolean): Effects<'both' | 'group' | 'neither'> {
  if (yield* ifSupported(call('fchown', fd, uid, gid), !required)) return 'both';
  return (yield* ifSupported(call('fchown', fd, KEEP_ID, gid), true)) ? 'group' : 'neither';
}

/** `chown(2)`: leave this one as it is. */
const KEEP_ID = -1;
