/**
 * Replacing a file, written once for the asynchronous and the synchronous function:
 * temporary file → write → owner, mode → fsync → close → rename → fsync of the directory → sweep.
 */
import type { BigIntStats } from 'node:fs';
import { basename, dirname, isAbsolute } from 'node:path';

import { Backoff } from '../core/backoff.js';
import { errnoOf } from '../core/errno.js';
import type { Clock } from '../core/clock.js';
import { MAX_LINKS } from '../core/file-system.js';
import type { Random } from '../core/random.js';
import { sleep } from '../core/sleep.js';
import { call, wait, type Effects } from '../fs/effects.js';
import type { SynchronousCalls } from '../fs/locality.js';
import { holdsBytes } from './file-content.js';
import { enterDirectory, makeDirectories, untrustedLink, type HeldDirectory } from './held-directory.js';
import { isAsCreated, MAX_WRITE_BYTES, PendingFile } from './pending-file.js';
import type { Durability, FileAttributes, Owner } from './pending-file.js';
import { sweepFiles } from './sweep-files.js';
import { ifThere } from './tolerated-failures.js';
import { RENEWAL_MS, temporaryName } from './temporary-name.js';
import { inheritedMode, mayFollow, mayReplace } from './trust.js';
import { Refusal, WriteProgress } from './write-progress.js';
import type { WriteSource } from './write-source.js';
import { renameRetryMs } from './rename-retry.js';

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
interface ReplaceSettings {
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
  /** Whether a newer write has completed meanwhile. */
  readonly isOvertaken: () => boolean;
}

/** The disk, the inodes or the quota are used up. */
const OUT_OF_ROOM: ReadonlySet<string | undefined> = new Set(['ENOSPC', 'EDQUOT']);

/** Tokens and kubeconfigs are for their owner only. */
const DEFAULT_MODE = 0o600;

/** How long to wait before a rename is tried again. */
const FIRST_RENAME_DELAY_MS = 20;
const MAX_RENAME_DELAY_MS = 200;

/** Replaces `path` (absolute) with the data of `source`. Throws a `WriteError`, or the signal's reason. */
export function* replaceFile(
  path: string,
  source: WriteSource,
  settings: ReplaceSettings,
  calls: SynchronousCalls,
  waiting?: Waiting,
): Effects<AtomicWriteResult> {
  const replacement = new Replacement(path, settings, calls, waiting);
  try {
    return yield* replacement.run(source);
  } catch (cause) {
    if (waiting?.signal?.aborted && cause === waiting.signal.reason) throw cause;
    throw replacement.progress.failure(cause);
  } finally {
    source.close();
  }
}

class Replacement {
  readonly progress: WriteProgress;
  readonly #settings: ReplaceSettings;
  readonly #calls: SynchronousCalls;
  readonly #waiting: Waiting | undefined;
  /** Where the links lead. */
  #path: string;
  /** The directory of `#path`; undefined while it does not exist. */
  #directory: HeldDirectory | undefined;

  constructor(
    path: string,
    settings: ReplaceSettings,
    calls: SynchronousCalls,
    waiting: Waiting | undefined,
  ) {
    this.progress = new WriteProgress(path);
    this.#path = path;
    this.#settings = settings;
    this.#calls = calls;
    this.#waiting = waiting;
  }

  *run(source: WriteSource): Effects<AtomicWriteResult> {
    try {
      const existing = yield* this.#resolve();
      return yield* this.#replace(existing, source);
    } catch (error) {
      // What writers that were killed left may take the room.
      if (OUT_OF_ROOM.has(errnoOf(error))) yield* this.#sweep(undefined);
      throw error;
    } finally {
      yield* this.#leave();
    }
  }

  // --------------------------------------------------------------------------------------------- where

  /** Follows the links at the end of the path, and opens the directory of the file. Returns the file to replace. */
  *#resolve(): Effects<BigIntStats | undefined> {
    for (let links = 0; ; links += 1) {
      if (this.#path.endsWith('/')) throw new Refusal('ERR_WRITE_NOT_FILE', 'it is a directory');
      yield* this.#enter();
      if (!this.#directory) return undefined;
      const stat = yield* ifThere(call('lstat', this.#directory.at(basename(this.#path))));
      if (!stat?.isSymbolicLink()) {
        if (stat) assertReplaceable(stat, this.#directory.stat);
        return stat;
      }
      if (this.#settings.symlink === 'replace') return undefined;
      this.#path = yield* this.#follow(stat, this.#directory, links);
      yield* this.#leave();
    }
  }

  /** Where a link at the path leads. */
  *#follow(link: BigIntStats, directory: HeldDirectory, links: number): Effects<string> {
    if (this.#settings.symlink === 'error') {
      throw new Refusal('ERR_WRITE_SYMLINK', 'it is a symbolic link, and symlink is "error"');
    }
    if (links === MAX_LINKS) {
      throw new Refusal('ERR_WRITE_SYMLINK', `its symbolic links form a loop, or are more than ${MAX_LINKS}`);
    }
    if (!mayFollow(link, directory.stat)) throw untrustedLink(this.#path);
    const target = yield* call('readlink', directory.at(basename(this.#path)));
    // Not `resolve()`: `..` means the parent of where the directory really is.
    return isAbsolute(target) ? target : `${dirname(this.#path)}/${target}`;
  }

  /** Opens the directory of the path; not if it is missing and is to be created. */
  *#enter(): Effects<void> {
    const { createDirectory, durability } = this.#settings;
    const options = { readable: durability === 'full' };
    this.progress.step = 'open-directory';
    try {
      this.#directory = yield* enterDirectory(dirname(this.#path), this.#calls, options);
    } catch (error) {
      if (!createDirectory || errnoOf(error) !== 'ENOENT') throw error;
    }
    this.progress.step = 'resolve';
  }

  *#leave(): Effects<void> {
    const directory = this.#directory;
    this.#directory = undefined;
    yield* directory?.close() ?? nothing();
  }

  *#createDirectory(): Effects<HeldDirectory> {
    this.progress.step = 'create-directory';
    const durable = this.#settings.durability === 'full';
    const directory = yield* makeDirectories(dirname(this.#path), { readable: durable, durable });
    this.#directory = directory;
    yield* this.#calls.enter(directory.stat, directory.at('.'));
    return directory;
  }

  // ---------------------------------------------------------------------------------------------- what

  *#replace(existing: BigIntStats | undefined, source: WriteSource): Effects<AtomicWriteResult> {
    let whole = source.whole;
    if (this.#settings.ifChanged) {
      whole ??= yield* this.#collect(source);
      if (existing && this.#directory && (yield* this.#isSame(existing, this.#directory, whole))) {
        return { path: this.#path, written: false, bytes: whole.byteLength };
      }
    }
    const directory = this.#directory ?? (yield* this.#createDirectory());
    this.#throwIfAborted();

    const syncs = this.#syncsWhileWriting(existing, whole);
    const file = yield* PendingFile.create(directory, () => temporaryName('file'), this.progress, { syncs });
    let overtaken: boolean;
    try {
      if (whole) yield* file.write(whole);
      else yield* this.#copy(source, file);
      const created = yield* file.finish(this.#attributes(existing), this.#settings.durability);
      overtaken = yield* this.#publish(file, created, directory);
      if (!overtaken) yield* this.#sweep(created.ctimeNs);
    } catch (error) {
      if (!this.progress.published) yield* file.discard();
      throw error;
    }
    if (overtaken) yield* file.discard();
    return { path: this.#path, written: !overtaken, bytes: file.written };
  }

  /** @param now the time of the file system's own clock, ns, if it is known. */
  *#sweep(now: bigint | undefined): Effects<void> {
    if (!this.#directory || !this.#settings.sweep) return;
    yield* sweepFiles(this.#directory, { fs: this.#calls.fs, now });
  }

  /**
   * Whether writing and syncing are one call, which saves a trip through the thread pool. Only where it is one write that
   * nothing follows: each write, and a change of the attributes, would be synced by itself.
   */
  #syncsWhileWriting(existing: BigIntStats | undefined, whole: Uint8Array | undefined): boolean {
    if (this.#settings.durability === 'none' || !this.#calls.isOnDisk) return false;
    const isOneWrite = whole !== undefined && whole.byteLength > 0 && whole.byteLength <= MAX_WRITE_BYTES;
    return isOneWrite && isAsCreated(this.#attributes(existing));
  }

  #attributes(existing: BigIntStats | undefined): FileAttributes {
    const { mode, owner } = this.#settings;
    return {
      mode: typeof mode === 'number' ? mode : modeAfter(existing, mode === 'keep'),
      owner: owner ?? (existing && { uid: Number(existing.uid), gid: Number(existing.gid) }),
      required: { mode: typeof mode === 'number', owner: owner !== undefined },
    };
  }

  *#isSame(existing: BigIntStats, directory: HeldDirectory, bytes: Uint8Array): Effects<boolean> {
    const { mode, owner } = this.#settings;
    this.progress.step = 'compare';
    if (typeof mode === 'number' && (existing.mode & 0o7777n) !== BigInt(mode)) return false;
    if (owner && (existing.uid !== BigInt(owner.uid) || existing.gid !== BigInt(owner.gid))) return false;
    try {
      return yield* holdsBytes(directory, basename(this.#path), existing, bytes);
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
    this.progress.step = 'read-source';
    this.#throwIfAborted();
    const { clock, signal } = this.#waiting ?? {};
    return yield* source.next(clock && { clock, signal, renewalMs: RENEWAL_MS }, renew);
  }

  // ------------------------------------------------------------------------------------------- publishing

  /** Renames the finished file, unless a newer write has completed meanwhile: then it returns true. */
  *#publish(file: PendingFile, created: BigIntStats, directory: HeldDirectory): Effects<boolean> {
    const { progress } = this;
    progress.step = 'rename';
    yield* directory.assertInPlace();
    this.#throwIfAborted();
    if (this.#waiting?.isOvertaken()) return true;
    yield* this.#rename(file.path, directory.at(basename(this.#path)), created);
    progress.published = true;
    progress.step = 'sync-directory';
    if (this.#settings.durability === 'full') yield* directory.sync();
    return false;
  }

  *#rename(from: string, to: string, created: BigIntStats): Effects<void> {
    const backoff = new Backoff({
      firstDelayMs: FIRST_RENAME_DELAY_MS,
      maxDelayMs: MAX_RENAME_DELAY_MS,
      random: this.#waiting?.random ?? (() => 0),
    });
    for (let waitedMs = 0; ;) {
      try {
        yield* call('rename', from, to);
        return;
      } catch (error) {
        // When the answer of a server is lost, the rename is sent again, and fails the second time.
        if (yield* isSameFile(to, created)) return;
        if (!this.#waiting || waitedMs >= renameRetryMs(errnoOf(error))) throw error;
      }
      const { clock, signal } = this.#waiting;
      const delayMs = backoff.next();
      waitedMs += delayMs;
      yield* wait(() => sleep(clock, delayMs, signal && { signal }));
    }
  }

  #throwIfAborted(): void {
    this.#waiting?.signal?.throwIfAborted();
  }
}

/** The mode of a file for which none was given. */
function modeAfter(existing: BigIntStats | undefined, keep: boolean): number {
  if (!existing) return DEFAULT_MODE;
  return keep ? Number(existing.mode & 0o7777n) : inheritedMode(existing);
}

/** Refuses what is not a file, and a file that somebody else may have created for us. */
function assertReplaceable(stat: BigIntStats, directory: BigIntStats): void {
  if (stat.isDirectory()) throw new Refusal('ERR_WRITE_NOT_FILE', 'it is a directory');
  if (!stat.isFile()) {
    throw new Refusal(
      'ERR_WRITE_NOT_FILE',
      'it is a device, a pipe or a socket, which a file must not replace',
    );
  }
  if (!mayReplace(stat, directory)) {
    const what = 'it belongs to another user, in a directory where others can create files';
    throw new Refusal('ERR_WRITE_UNTRUSTED', `${what}; remove it, or write to a directory of your own`);
  }
}

function* nothing(): Effects<undefined> {}

function* isSameFile(path: string, created: BigIntStats): Effects<boolean> {
  try {
    const { dev, ino } = yield* call('lstat', path);
    return dev === created.dev && ino === created.ino;
  } catch {
    return false;
  }
}
