/**
 * Replacing a file, written once for the asynchronous and the synchronous function:
 * temporary file → write → owner, mode → fsync → close → rename → fsync of the directory → sweep.
 */
import type { BigIntStats } from 'node:fs';

import { errnoOf } from '../core/errno.js';
import type { Clock } from '../core/clock.js';
import type { Random } from '../core/random.js';
import type { Effects } from '../fs/effects.js';
import type { SynchronousCalls } from '../fs/locality.js';
import { Destination } from './destination.js';
import { attributesFor, hasAttributes, type FileAttributes, type Owner } from './file-attributes.js';
import { holdsBytes } from './file-content.js';
import type { HeldDirectory } from './held-directory.js';
import { isAsCreated, MAX_WRITE_BYTES, PendingFile, type Durability } from './pending-file.js';
import { renameFile } from './rename-file.js';
import { sweepFiles } from './sweep-files.js';
import { RENEWAL_MS, temporaryName } from './temporary-name.js';
import { WriteProgress } from './write-progress.js';
import type { RunningWrite } from './write-queue.js';
import type { WriteSource } from './write-source.js';

/** The result of an atomic write. */
export interface AtomicWriteResult {
  /** The file that holds the data: absolute, with the links at its end followed if `symlink` says so. */
  readonly path: string;
  /** False when nothing was changed: everything was as wanted (`ifChanged`), or a later synchronous write came first. */
  readonly written: boolean;
  /** The size of the data, bytes. */
  readonly bytes: number;
}

/** How to replace a file; see the options of the same names. */
export interface ReplaceSettings {
  readonly mode: number | 'keep' | undefined;
  readonly owner: Owner | undefined;
  readonly durability: Durability;
  readonly symlink: 'follow' | 'replace' | 'error';
  readonly ifChanged: boolean;
  readonly createDirectory: boolean;
  readonly sweep: boolean;
}

/** What only an asynchronous write has. */
export interface Waiting {
  readonly clock: Clock;
  readonly random: Random;
  readonly signal: AbortSignal | undefined;
  readonly turn: RunningWrite;
}

/** The disk, the inodes or the quota are used up. */
const OUT_OF_ROOM: ReadonlySet<string | undefined> = new Set(['ENOSPC', 'EDQUOT']);

/** Replaces `path` (absolute) with the data of `source`. Throws a `WriteError`, or the signal's reason. */
export function* replaceFile(
  path: string,
  source: WriteSource,
  settings: ReplaceSettings,
  calls: SynchronousCalls,
  waiting?: Waiting,
  beforeRename?: () => void,
): Effects<AtomicWriteResult> {
  const progress = new WriteProgress(path);
  const destination = new Destination(path, settings, calls, progress);
  try {
    yield* destination.open();
    return yield* new Replacement(destination, settings, calls, progress, waiting, beforeRename).run(source);
  } catch (cause) {
    throw yield* failureOf(cause, progress, destination.directory, settings, calls, waiting);
  } finally {
    source.close();
    yield* destination.close();
  }
}

/**
 * Removes the file of a write that failed. If the rename failed, three things can be seen: the file is at its destination,
 * by its inode number (`renameFile` finds it, and the rename was done); it is still here to be removed (it was not done); or
 * neither, because inode numbers change with each lookup, as on some FUSE file systems, or lookups are cached. Then it is not
 * known. On a file system that is known to be local it is: what the kernel says to have failed has not been done.
 */
export function* abandon(file: PendingFile, progress: WriteProgress, calls: SynchronousCalls): Effects<void> {
  const isRemoved = yield* file.discard();
  if (progress.isRenaming && !isRemoved && !calls.isLocal) progress.published = null;
}

/** What to throw when a write was ended by `cause`. */
export function* failureOf(
  cause: unknown,
  progress: WriteProgress,
  directory: HeldDirectory | undefined,
  { sweep }: ReplaceSettings,
  calls: SynchronousCalls,
  waiting: Waiting | undefined,
): Effects<unknown> {
  if (waiting?.signal?.aborted && cause === waiting.signal.reason) return cause;
  // What writers that were killed left may take the room.
  if (directory && sweep && OUT_OF_ROOM.has(errnoOf(cause))) {
    yield* sweepFiles(directory, { fs: calls.fs, now: calls.now, isUrgent: true });
  }
  return progress.failure(cause);
}

/** Replaces the file at a destination that is open. */
class Replacement {
  readonly #destination: Destination;
  readonly #settings: ReplaceSettings;
  readonly #calls: SynchronousCalls;
  readonly #progress: WriteProgress;
  readonly #waiting: Waiting | undefined;
  readonly #beforeRename: (() => void) | undefined;

  constructor(
    destination: Destination,
    settings: ReplaceSettings,
    calls: SynchronousCalls,
    progress: WriteProgress,
    waiting: Waiting | undefined,
    beforeRename: (() => void) | undefined,
  ) {
    this.#destination = destination;
    this.#settings = settings;
    this.#calls = calls;
    this.#progress = progress;
    this.#waiting = waiting;
    this.#beforeRename = beforeRename;
  }

  *run(source: WriteSource): Effects<AtomicWriteResult> {
    const destination = this.#destination;
    let { whole } = source;
    if (this.#settings.ifChanged) {
      whole ??= yield* this.#collect(source);
      if (yield* this.#isUnchanged(whole)) {
        return { path: destination.path, written: false, bytes: whole.byteLength };
      }
    }
    const directory = destination.directory ?? (yield* destination.createDirectory());
    this.#throwIfAborted();

    const attributes = attributesFor(this.#settings, destination.existing);
    const syncs = this.#syncsWhileWriting(attributes, whole);
    const file = yield* PendingFile.create(directory, () => temporaryName('file'), this.#progress, { syncs });
    let isPublished = false;
    try {
      if (whole) yield* file.write(whole);
      else yield* this.#copy(source, file);
      const created = yield* file.finish(attributes, this.#settings.durability);
      isPublished = yield* this.#publish(file, created, directory);
      if (isPublished && this.#settings.sweep) {
        yield* sweepFiles(directory, { fs: this.#calls.fs, now: created.ctimeNs });
      }
    } finally {
      if (!this.#progress.published) yield* abandon(file, this.#progress, this.#calls);
    }
    return { path: destination.path, written: isPublished, bytes: file.written };
  }

  /**
   * Whether writing and syncing are one call, which saves a trip through the thread pool. Only where it is one write that
   * nothing follows: each write, and a change of the attributes, would be synced by itself.
   */
  #syncsWhileWriting(attributes: FileAttributes, whole: Uint8Array | undefined): boolean {
    if (this.#settings.durability === 'none' || !this.#calls.isOnDisk) return false;
    const isOneWrite = whole !== undefined && whole.byteLength > 0 && whole.byteLength <= MAX_WRITE_BYTES;
    return isOneWrite && isAsCreated(attributes);
  }

  *#isUnchanged(bytes: Uint8Array): Effects<boolean> {
    const { existing, directory, name } = this.#destination;
    if (!existing || !directory) return false;
    this.#progress.step = 'compare';
    if (!hasAttributes(this.#settings, existing)) return false;
    try {
      return yield* holdsBytes(directory, name, existing, bytes);
    } catch (error) {
      // Not readable, removed, replaced by a link, or leased by its owner: it can be replaced all the same.
      if (['EACCES', 'ENOENT', 'ELOOP', 'EAGAIN'].includes(errnoOf(error) ?? '')) return false;
      throw error;
    }
  }

  *#copy(source: WriteSource, file: PendingFile): Effects<void> {
    for (;;) {
      const chunk = yield* this.#next(source, () => file.touch());
      if (!chunk) return;
      yield* file.write(chunk);
    }
  }

  *#collect(source: WriteSource): Effects<Uint8Array> {
    const chunks: Uint8Array[] = [];
    for (;;) {
      const chunk = yield* this.#next(source, nothing);
      if (!chunk) return Buffer.concat(chunks);
      // The source may reuse its buffer.
      chunks.push(Uint8Array.from(chunk));
    }
  }

  *#next(source: WriteSource, renew: () => Effects<void>): Effects<Uint8Array | undefined> {
    this.#progress.step = 'read-source';
    this.#throwIfAborted();
    const { clock, signal } = this.#waiting ?? {};
    return yield* source.next(clock && { clock, signal, renewalMs: RENEWAL_MS }, renew);
  }

  /** Renames the finished file; not if a newer write has completed meanwhile. Returns whether it did. */
  *#publish(file: PendingFile, created: BigIntStats, directory: HeldDirectory): Effects<boolean> {
    this.#progress.step = 'rename';
    yield* directory.assertInPlace();
    this.#throwIfAborted();
    if (this.#waiting?.turn.overtaken) return false;
    this.#progress.isRenaming = true;
    this.#beforeRename?.();
    if (!(yield* this.#rename(file.path, directory.at(this.#destination.name), created))) return false;
    this.#progress.published = true;
    this.#progress.step = 'sync-directory';
    if (this.#settings.durability === 'full') yield* directory.sync();
    return true;
  }

  /** False if a synchronous write has removed the file meanwhile. */
  *#rename(from: string, to: string, file: BigIntStats): Effects<boolean> {
    const { turn } = this.#waiting ?? {};
    if (turn) turn.renaming = from;
    try {
      yield* renameFile(from, to, file, this.#waiting);
      return true;
    } catch (error) {
      if (turn?.overtaken) return false;
      throw error;
    } finally {
      if (turn) turn.renaming = undefined;
    }
  }

  #throwIfAborted(): void {
    this.#waiting?.signal?.throwIfAborted();
  }
}

function* nothing(): Effects<undefined> {}
