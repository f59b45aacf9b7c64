import type { BigIntStats } from 'node:fs';

import { constants } from '../core/ports/builtins.js';
import type { Clock } from '../core/ports/clock.js';
import { PERMISSIONS } from '../core/options/mode.js';
import { isOnWindows } from '../core/ports/platform-path.js';
import { errnoOf } from '../core/errors/errno.js';
import { sleep } from '../core/scheduling/sleep.js';
import { attempt, UNSUPPORTED } from './calls.js';
import {
  PRIVATE_MODE,
  hasOwner,
  KEEP_ID,
  withoutGroup,
  type FileAttributes,
  type Owner,
} from './file-attributes.js';
import { isSame, type HeldDirectory } from './held-directory.js';
import { wait, type Steps } from '../core/scheduling/steps.js';
import { removeUnfinished } from './sweep.js';

const { O_NOFOLLOW = 0 } = constants as Partial<typeof constants>;
const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | O_NOFOLLOW;

/** One call writes less than 2 GiB. A smaller limit costs nothing. */
const MAX_WRITE_BYTES = 8 * 2 ** 20;

/**
 * How long a refused rename is retried, ms. On Windows, scanners, indexers and readers hold files open; editors and
 * graceful-fs wait for them as long. On other systems only EBUSY can be temporary (some FUSE and network file systems).
 * Usually it means that the file is a mount point, and the error should come soon.
 */
const WINDOWS: Readonly<Record<string, number>> = { EBUSY: 60_000, EPERM: 60_000, EACCES: 60_000 };
const OTHERS: Readonly<Record<string, number>> = { EBUSY: 150 };

/** How long to wait before a rename is tried again, ms: longer each time. */
const FIRST_DELAY_MS = 10;
const LONGEST_DELAY_MS = 1_000;

/** How an asynchronous write waits. */
export interface Waiting {
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
}

/** A new file, from its creation until it is complete, synced, closed and, if necessary, renamed to its destination. */
export class PendingFile {
  readonly #directory: HeldDirectory;
  /** Its name until it is renamed. */
  readonly name: string;
  readonly #fd: number;
  #isOpen = true;
  /** Its status when everything had been written. */
  #created: BigIntStats | undefined;
  #written = 0;

  private constructor(directory: HeldDirectory, name: string, fd: number) {
    this.#directory = directory;
    this.name = name;
    this.#fd = fd;
  }

  /** @param mode less the umask; by default, no other user can open the file before it is complete. */
  static *create(directory: HeldDirectory, name: string, mode = PRIVATE_MODE): Steps<PendingFile> {
    directory.write.step = 'create';
    try {
      const fd = yield* wait(directory.calls.create(directory.at(name), CREATE, mode));
      return new PendingFile(directory, name, fd);
    } catch (error) {
      // A network file system may create the file and still report an error.
      if (errnoOf(error) !== 'EEXIST') yield* removeUnfinished(directory, name);
      throw error;
    }
  }

  /** Appends all of the bytes. On a full disk, a write is short first, and only the next one fails. */
  *write(bytes: Uint8Array): Steps<void> {
    this.#directory.write.step = 'write';
    for (let done = 0; done < bytes.byteLength;) {
      const length = Math.min(bytes.byteLength - done, MAX_WRITE_BYTES);
      const { write } = this.#directory.callsFor(length);
      const count = yield* wait(write(this.#fd, bytes, done, length, null));
      if (count <= 0) throw new Error('the system wrote nothing and gave no reason');
      done += count;
      this.#written += count;
    }
  }

  /** The user ID of its owner. */
  *owner(): Steps<bigint> {
    return (yield* this.#stat()).uid;
  }

  /** Sets its attributes, syncs and closes it. Returns its size, bytes. */
  *finish(attributes: FileAttributes): Steps<number> {
    const { calls, write } = this.#directory;
    const created = (this.#created = yield* this.#stat());
    if (created.size !== BigInt(this.#written)) {
      throw new Error(`${this.#written} bytes were written, but the file has ${created.size}`);
    }
    // The owner first: changing it clears the set-id bits of the mode.
    const { owner } = attributes;
    const isOwned = !owner || hasOwner(owner, created);
    const mode = isOwned ? attributes.mode : yield* this.#setOwner(owner, attributes, created);
    if ((Number(created.mode) & PERMISSIONS) !== mode) {
      write.step = 'chmod';
      const tolerated = attributes.required.mode ? [] : UNSUPPORTED;
      yield* attempt(() => calls.fchmod(this.#fd, mode), tolerated);
    }
    // Otherwise the rename can reach the disk before the data: after a power cut the file is there, and empty.
    if (write.durability !== 'none') {
      write.step = 'sync';
      yield* attempt(() => calls.fsync(this.#fd), UNSUPPORTED);
    }
    // A network file system may report only now that the disk is full.
    write.step = 'close';
    this.#isOpen = false;
    yield* wait(calls.close(this.#fd));
    return this.#written;
  }

  /**
   * Renames it over another file.
   * @param waiting undefined in synchronous work, which cannot wait: the first error is final.
   */
  *renameTo(name: string, waiting: Waiting | undefined): Steps<void> {
    const began = waiting?.clock.monotonic() ?? 0;
    for (let delayMs = FIRST_DELAY_MS; ; delayMs = Math.min(2 * delayMs, LONGEST_DELAY_MS)) {
      try {
        return yield* wait(this.#directory.rename(this.name, name));
      } catch (error) {
        // If the answer of a server was lost, the rename was sent again, and failed the second time.
        if (yield* this.#isAt(name)) return;
        const limits = isOnWindows() ? WINDOWS : OTHERS;
        const limitMs = limits[errnoOf(error) ?? ''] ?? 0;
        if (!waiting || waiting.clock.monotonic() - began >= limitMs) throw error;
      }
      const { clock, signal } = waiting;
      yield* wait(sleep(clock, delayMs, signal && { signal }));
    }
  }

  /** Removes it, or leaves it to a later sweep. Returns whether it existed and was removed. */
  *discard(): Steps<boolean> {
    try {
      if (this.#isOpen) yield* wait(this.#directory.calls.close(this.#fd));
    } catch {
      // Its content is not needed.
    }
    return yield* removeUnfinished(this.#directory, this.name);
  }

  /** Sets the owner or, if only the group can be set, the group. Returns the mode that suits the resulting owner. */
  *#setOwner({ uid, gid }: Owner, attributes: FileAttributes, created: BigIntStats): Steps<number> {
    const { mode, required } = attributes;
    const { calls, write } = this.#directory;
    write.step = 'chown';
    const tolerated = required.owner ? [] : UNSUPPORTED;
    if (yield* attempt(() => calls.fchown(this.#fd, uid, gid), tolerated)) return mode;
    // A process that may not give the file away may still set its group.
    const isGroupSet = yield* attempt(() => calls.fchown(this.#fd, KEEP_ID, gid), UNSUPPORTED);
    const hasGroup = isGroupSet || hasOwner({ uid: KEEP_ID, gid }, created);
    // With another owner, set-ID bits would run it as the wrong user; with another group, its bits admit the wrong one.
    return hasGroup || required.mode ? mode & 0o777 : withoutGroup(mode & 0o777);
  }

  *#stat(): Steps<BigIntStats> {
    const { calls, write } = this.#directory;
    write.step = 'verify';
    return yield* wait(calls.fstat(this.#fd, { bigint: true }));
  }

  *#isAt(name: string): Steps<boolean> {
    try {
      const found = yield* wait(this.#directory.lstat(name));
      return found !== undefined && this.#created !== undefined && isSame(found, this.#created);
    } catch {
      return false;
    }
  }
}
