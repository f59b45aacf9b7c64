import { resolve, sep } from 'node:path';

import type { Clock } from '../core/clock.js';
import type { FileSystem } from '../core/file-system.js';
import {
  checkPath,
  fileSystem,
  flag,
  matching,
  oneOf,
  PORT_OPTIONS,
  resolveOptions,
} from '../core/options.js';
import type { Random } from '../core/random.js';
import { absolutePath } from '../fs/absolute-path.js';
import { runAsync, runSync } from '../fs/effects.js';
import { SynchronousCalls } from '../fs/locality.js';
import { isMode, isOwner, type Owner } from './file-attributes.js';
import type { Durability } from './pending-file.js';
import { writeDirectly } from './direct-write.js';
import { replaceFile, type AtomicWriteResult } from './replace-file.js';
import { trace, traceSync } from '../core/telemetry.js';
import { processWrites, type RunningWrite } from './write-queue.js';
import { isChunk, toBytes, WriteSource, type SyncWriteData, type WriteData } from './write-source.js';

/** Options of {@link atomicWriteFileSync}, and of {@link atomicWriteFile}. */
export interface AtomicWriteFileSyncOptions {
  /**
   * Permission bits, 0 to 0o7777, independent of the umask. Default: 0o600 for a new file, since tokens, keys and
   * kubeconfigs are what is written most; else those of the existing regular file, but for its group only those that
   * everybody has: if it has an ACL, which is lost, the group bits are the most that the ACL grants to anybody.
   * `'keep'`: all of them, for files without an ACL. They are dropped if the group cannot be kept.
   */
  readonly mode?: number | 'keep' | undefined;
  /** Default: the owner of the existing regular file as far as the process may set it, else that of the process. */
  readonly owner?: Owner | undefined;
  /**
   * What survives a power cut once the write is done. `'full'` (default): the new content. `'file'`: old or new
   * content, never an empty or partial file. `'none'`: no guarantee; only running programs are safe.
   */
  readonly durability?: Durability | undefined;
  /**
   * What to do when the path is a symbolic link. `'follow'` (default): the file it leads to is replaced, or created.
   * `'replace'`: the link is replaced by a file. `'error'`: nothing is written.
   */
  readonly symlink?: 'follow' | 'replace' | 'error' | undefined;
  /**
   * Changes nothing when the bytes, and the `mode` and `owner` that are given, are as wanted. Data in chunks is
   * collected in memory first. Default false.
   */
  readonly ifChanged?: boolean | undefined;
  /** Creates missing directories (mode 0777 less the umask). Default false. */
  readonly createDirectory?: boolean | undefined;
  /**
   * Removes the temporary files of writers that were killed, with the first write of this process to the directory and
   * then once a minute. Default true. It lists the directory.
   */
  readonly sweep?: boolean | undefined;
  /** Default: `node:fs`. */
  readonly fs?: FileSystem | undefined;
}

/** Options of {@link atomicWriteFile}. */
export interface AtomicWriteFileOptions extends AtomicWriteFileSyncOptions {
  /**
   * When several calls in a row for the same path wait and all set it, only the newest writes, and the others get its
   * result. Default false: each call writes, in the order of the calls.
   */
  readonly coalesce?: boolean | undefined;
  /** Aborting before the rename leaves nothing behind and rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Default: the system's clock. */
  readonly clock?: Clock | undefined;
  /** Jitter between attempts to rename. Default: `Math.random`. */
  readonly random?: Random | undefined;
}

/**
 * Replaces or creates a file: a reader sees the old or the new bytes, never a part of them and never no file. When the
 * promise resolves, the new bytes survive a power cut (see `durability`). Calls for the same path run one after
 * another. Hard links, ACLs and extended attributes of the old file are lost.
 *
 * @param data must not be changed until the promise settles.
 * @throws {WriteError} (rejects) `step` says where it failed, `published` whether readers see the new content.
 * @throws {TypeError | RangeError} (rejects) for an invalid argument.
 * @throws the signal's reason (rejects) when aborted.
 */
export function atomicWriteFile(
  path: string,
  data: WriteData,
  options?: AtomicWriteFileOptions,
): Promise<AtomicWriteResult> {
  try {
    return begin(path, data, options);
  } catch (error) {
    const reason = error as Error;
    return Promise.reject(reason);
  }
}

function begin(
  path: string,
  data: WriteData,
  options: AtomicWriteFileOptions | undefined,
): Promise<AtomicWriteResult> {
  const settings = resolveOptions('atomicWriteFile', options, OPTIONS);
  const whole = isChunk(data) ? toBytes(data) : undefined;
  const source = whole ? undefined : new WriteSource('atomicWriteFile', data, { canWait: true });
  const target = absolutePath(checkPath('atomicWriteFile', 'path', path));
  const { coalesce, signal, fs, clock, random } = settings;
  const work = (turn: RunningWrite): Promise<AtomicWriteResult> => {
    const calls = new SynchronousCalls(fs);
    const waiting = { clock, random, signal, turn };
    const otherwise = (): Promise<AtomicWriteResult> => {
      const given = source ?? new WriteSource('atomicWriteFile', whole, { canWait: true });
      return runAsync(replaceFile(target, given, settings, calls, waiting), fs, calls.allows);
    };
    if (!whole) return otherwise();
    return writeDirectly({ path: target, bytes: whole, settings, calls, waiting, otherwise });
  };
  const run = (): Promise<AtomicWriteResult> =>
    processWrites.run(queueKey(target), { coalesce, signal, work });
  return trace('write', { path: target }, run, resultOf);
}

/** The path under which writes wait for each other, however it is spelled. */
function queueKey(path: string): string {
  // Most paths are normal, which is found more quickly than it is done.
  const isNormal = !path.includes('//') && !path.includes('/.') && !path.endsWith('/');
  return isNormal && sep === '/' ? path : resolve(path);
}

/**
 * The same, synchronously: for exit handlers and other places that cannot wait. It does not wait for asynchronous
 * writes to the same path: those that have not yet renamed their file are dropped and resolve with `written: false`.
 * A rename that Windows refuses temporarily is not retried.
 *
 * @throws {WriteError} `step` says where it failed, `published` whether readers see the new content.
 * @throws {TypeError | RangeError} for an invalid argument, such as a file system (`fs`) without `sync`.
 */
export function atomicWriteFileSync(
  path: string,
  data: SyncWriteData,
  options?: AtomicWriteFileSyncOptions,
): AtomicWriteResult {
  const settings = resolveOptions('atomicWriteFileSync', options, SYNC_OPTIONS);
  const source = new WriteSource('atomicWriteFileSync', data, { canWait: false });
  const target = absolutePath(checkPath('atomicWriteFileSync', 'path', path));
  const { fs } = settings;
  const { sync } = fs;
  if (!sync) throw new TypeError('atomicWriteFileSync: option "fs" has no synchronous calls');
  const withdraw = (): void => processWrites.withdraw(queueKey(target), sync);
  const run = (): AtomicWriteResult =>
    runSync(replaceFile(target, source, settings, new SynchronousCalls(fs), undefined, withdraw), sync);
  const result = traceSync('write', { path: target }, run, resultOf);
  processWrites.overtake(queueKey(target));
  return result;
}

function resultOf({ written }: AtomicWriteResult): string {
  return written ? 'written' : 'unchanged';
}

const SYNC_OPTIONS = {
  mode: matching<number | 'keep' | undefined>(
    undefined,
    'an integer from 0 to 0o7777 or "keep"',
    (value) => value === 'keep' || isMode(value),
  ),
  owner: matching<Owner | undefined>(undefined, 'an object { uid, gid } of integers >= 0', isOwner),
  durability: oneOf<Durability>('full', ['full', 'file', 'none']),
  symlink: oneOf<'follow' | 'replace' | 'error'>('follow', ['follow', 'replace', 'error']),
  ifChanged: flag(false),
  createDirectory: flag(false),
  sweep: flag(true),
  fs: fileSystem('open', 'write', 'rename'),
};

const OPTIONS = {
  ...SYNC_OPTIONS,
  coalesce: flag(false),
  ...PORT_OPTIONS,
};
