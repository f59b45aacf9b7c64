/**
 * Replacing a file, written once for both ways to run it:
 * temporary file → write → owner, mode → fsync → close → rename → fsync of the directory → sweep.
 */
import type { BigIntStats } from 'node:fs';
import { dirname, isAbsolute } from 'node:path';

import { Backoff } from '../core/backoff.js';
import { beginOpening, makeDirectories } from './directories.js';
import { errnoOf } from '../core/errors.js';
import { holdsBytes } from './file-content.js';
import type { Pace } from './pace.js';
import { PendingFile, syncDirectory } from './pending-file.js';
import type { Durability, FileAttributes, Owner } from './pending-file.js';
import { MAX_LINKS } from '../core/file-system.js';
import type { Clock } from '../core/clock.js';
import type { Random } from '../core/random.js';
import { sleep } from '../core/sleep.js';
import { begin, call, wait, type Effects } from '../fs/effects.js';
import { RENEWAL_MS, sweepFiles, temporaryName } from './temporary-name.js';
import { WriteProgress } from './write-progress.js';
import type { WriteSource } from './write-source.js';

/** What a write came to. */
export interface AtomicWriteResult {
  /** The file that holds the data: absolute, and where the links lead when they were followed. */
  readonly path: string;
  /** False when nothing was touched: all was right already (`ifChanged`), or a later synchronous write came first. */
  readonly written: boolean;
  /** The size of the data, bytes. */
  readonly bytes: number;
}

/** How to replace a file; the meaning is that of the options of the same names. */
export interface ReplaceSettings {
  readonly mode: number | undefined;
  readonly owner: Owner | undefined;
  readonly durability: Durability;
  readonly symlink: 'follow' | 'replace' | 'error';
  readonly ifChanged: boolean;
  readonly createDirectory: boolean;
  readonly sweep: boolean;
}

/** What only a write that can wait has. */
export interface Waiting {
  readonly clock: Clock;
  readonly random: Random;
  readonly signal: AbortSignal | undefined;
  /** Whether a newer write has been done past this one. */
  readonly isOvertaken: () => boolean;
}

/** Tokens and kubeconfigs: for their owner only. */
const DEFAULT_MODE = 0o600;

/**
 * For how long a rename is tried again, ms. On Windows, scanners and indexers hold files open for moments. On
 * other systems only EBUSY can pass (some FUSE and network file systems); mostly the file is a mount point,
 * and whoever waits for the error should not wait long.
 */
const RENAME_PATIENCE_MS: Readonly<Record<string, number>> =
  process.platform === 'win32' ? { EBUSY: 2000, EPERM: 2000, EACCES: 2000 } : { EBUSY: 150 };
const FIRST_RENAME_DELAY_MS = 20;
const LONGEST_RENAME_DELAY_MS = 200;

/** Replaces `path` (absolute) by what `source` gives. Throws a `WriteError`, or the signal's reason. */
export function* replaceFile(
  path: string,
  source: WriteSource,
  settings: ReplaceSettings,
  pace: Pace,
  waiting?: Waiting,
): Effects<AtomicWriteResult> {
  const replacement = new Replacement(path, settings, pace, waiting);
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
  readonly #pace: Pace;
  readonly #waiting: Waiting | undefined;
  /** Where the links lead. */
  #path: string;
  /** The entries of the directory, before this write. */
  #entries: (() => Effects<string[]>) | undefined;

  constructor(path: string, settings: ReplaceSettings, pace: Pace, waiting: Waiting | undefined) {
    this.progress = new WriteProgress(path);
    this.#path = path;
    this.#settings = settings;
    this.#pace = pace;
    this.#waiting = waiting;
  }

  *run(source: WriteSource): Effects<AtomicWriteResult> {
    const { ifChanged, createDirectory, durability } = this.#settings;
    const existing = yield* this.#resolve();
    const directory = dirname(this.#path);
    const attributes = this.#attributes(existing);

    let whole = source.whole;
    if (ifChanged) {
      whole ??= yield* this.#collect(source);
      if (existing && (yield* this.#isSame(existing, whole, attributes))) {
        return { path: this.#path, written: false, bytes: whole.byteLength };
      }
    }
    if (createDirectory && !existing) {
      this.progress.step = 'create-directory';
      yield* makeDirectories(directory, durability === 'full');
      yield* this.#enter();
    }
    this.#throwIfAborted();

    const file = yield* PendingFile.create(() => `${directory}/${temporaryName('file')}`, this.progress);
    let overtaken: boolean;
    try {
      if (whole) yield* file.write(whole);
      else yield* this.#copy(source, file);
      overtaken = yield* this.#publish(file, attributes, directory);
    } catch (error) {
      if (!this.progress.published) yield* file.discard();
      throw error;
    }
    if (overtaken) yield* file.discard();
    return { path: this.#path, written: !overtaken, bytes: file.written };
  }

  /** The work is in the directory of the path from now on. */
  *#enter(): Effects<void> {
    const directory = dirname(this.#path);
    yield* this.#pace.enter(directory);
    if (this.#settings.sweep) this.#entries = yield* begin('readdir', directory);
  }

  /** Follows the links, and refuses what is no file. */
  *#resolve(): Effects<BigIntStats | undefined> {
    const { symlink } = this.#settings;
    yield* this.#enter();
    let stat = yield* lstatIfAny(this.#path);
    for (let links = 1; stat?.isSymbolicLink(); links += 1) {
      if (symlink === 'replace') return undefined;
      if (symlink === 'error') {
        throw this.progress.refusal('ERR_WRITE_SYMLINK', 'it is a symbolic link, and symlink is "error"');
      }
      if (links > MAX_LINKS) {
        throw this.progress.refusal(
          'ERR_WRITE_SYMLINK',
          `the symbolic links are a loop, or more than ${MAX_LINKS}`,
        );
      }
      const target = yield* call('readlink', this.#path);
      // Not `resolve()`: `..` is meant from where the directory really is.
      this.#path = isAbsolute(target) ? target : `${dirname(this.#path)}/${target}`;
      // A link may lead to a server that is dead.
      this.#pace.leave();
      stat = yield* lstatIfAny(this.#path);
      if (!stat?.isSymbolicLink()) yield* this.#enter();
    }
    if (stat?.isDirectory() || this.#path.endsWith('/')) {
      throw this.progress.refusal('ERR_WRITE_NOT_FILE', 'it is a directory');
    }
    if (stat && !stat.isFile()) {
      throw this.progress.refusal(
        'ERR_WRITE_NOT_FILE',
        'a device, pipe or socket stands there, and replacing it by a file would break it',
      );
    }
    return stat;
  }

  #attributes(existing: BigIntStats | undefined): FileAttributes {
    const { mode, owner } = this.#settings;
    return {
      mode: mode ?? (existing ? Number(existing.mode & 0o7777n) : DEFAULT_MODE),
      owner: owner ?? (existing && { uid: Number(existing.uid), gid: Number(existing.gid) }),
      required: { mode: mode !== undefined, owner: owner !== undefined },
    };
  }

  *#isSame(existing: BigIntStats, bytes: Uint8Array, { mode, owner }: FileAttributes): Effects<boolean> {
    this.progress.step = 'compare';
    if ((existing.mode & 0o7777n) !== BigInt(mode)) return false;
    if (owner && (existing.uid !== BigInt(owner.uid) || existing.gid !== BigInt(owner.gid))) return false;
    try {
      return yield* holdsBytes(this.#path, existing, bytes);
    } catch (error) {
      // Not readable, or gone: it can be replaced all the same.
      if (errnoOf(error) === 'EACCES' || errnoOf(error) === 'ENOENT') return false;
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
      // The source may use its buffer again.
      chunks.push(Uint8Array.from(chunk));
    }
  }

  *#next(source: WriteSource, renew: () => Effects<void>): Effects<Uint8Array | undefined> {
    this.progress.step = 'read-source';
    this.#throwIfAborted();
    const { clock, signal } = this.#waiting ?? {};
    return yield* source.next(clock && { clock, signal, renewalMs: RENEWAL_MS }, renew);
  }

  /** Makes it whole and readers see it, unless a newer write has come past: then it returns true. */
  *#publish(file: PendingFile, attributes: FileAttributes, directory: string): Effects<boolean> {
    const { progress } = this;
    const { durability } = this.#settings;
    // Before the rename: what cannot be made durable should fail while nobody has seen it.
    const opening = durability === 'full' ? yield* beginOpening(directory) : undefined;
    let fd: number | undefined;
    try {
      const made = yield* file.finish(attributes, durability);
      progress.step = 'open-directory';
      fd = yield* opening?.() ?? nothing();
      progress.step = 'rename';
      this.#throwIfAborted();
      if (this.#waiting?.isOvertaken()) return true;
      yield* this.#rename(file.path, made);
      progress.published = true;
      progress.step = 'sync-directory';
      if (fd !== undefined) yield* syncDirectory(fd);
      yield* this.#sweep(directory, made.ctimeNs);
      return false;
    } finally {
      if (opening) yield* close(opening);
    }
  }

  *#sweep(directory: string, now: bigint): Effects<void> {
    let entries: readonly string[];
    try {
      entries = (yield* this.#entries?.() ?? nothing()) ?? [];
    } catch {
      // A directory that may be written to, but not listed.
      return;
    }
    yield* sweepFiles(directory, entries, now);
  }

  *#rename(from: string, made: BigIntStats): Effects<void> {
    const backoff = new Backoff({
      firstDelayMs: FIRST_RENAME_DELAY_MS,
      maxDelayMs: LONGEST_RENAME_DELAY_MS,
      random: this.#waiting?.random ?? (() => 0),
    });
    for (let waitedMs = 0; ;) {
      try {
        yield* call('rename', from, this.#path);
        return;
      } catch (error) {
        // A server whose answer was lost is asked twice, and fails the second time.
        if (yield* isSameFile(this.#path, made)) return;
        const quietPeriodMs = RENAME_PATIENCE_MS[errnoOf(error) ?? ''] ?? 0;
        if (!this.#waiting || waitedMs >= quietPeriodMs) throw error;
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

function* nothing(): Effects<undefined> {}

/** Closes what was opened, if it was. */
function* close(opening: () => Effects<number>): Effects<void> {
  try {
    yield* call('close', yield* opening());
  } catch {
    // It was not opened, which was told already; or all that was to be done with it is done.
  }
}

function* lstatIfAny(path: string): Effects<BigIntStats | undefined> {
  try {
    return yield* call('lstat', path);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function* isSameFile(path: string, made: BigIntStats): Effects<boolean> {
  try {
    const { dev, ino } = yield* call('lstat', path);
    return dev === made.dev && ino === made.ino;
  } catch {
    return false;
  }
}
