/** Files that are replaced whole or not at all. */
import { resolve } from 'node:path';

import { absolutePath } from '../fs/absolute-path.js';
import {
  checkPath,
  fileSystem,
  flag,
  matching,
  oneOf,
  PORT_OPTIONS,
  resolveOptions,
} from '../core/options.js';
import { Pace } from './pace.js';
import { isMode, isOwner, type Durability, type Owner } from './pending-file.js';
import type { Clock } from '../core/clock.js';
import type { FileSystem } from '../core/file-system.js';
import type { Random } from '../core/random.js';
import { replaceFile, type AtomicWriteResult } from './replace-file.js';
import { runAsync, runSync } from '../fs/effects.js';
import { processWrites } from './write-queue.js';
import { WriteSource, type SyncWriteData, type WriteData } from './write-source.js';

/** Options of {@link atomicWriteFileSync}, and of {@link atomicWriteFile}. */
export interface AtomicWriteFileSyncOptions {
  /**
   * The permission bits, 0 to 0o7777, whatever the umask. Default: those of the existing regular file, else
   * 0o600, since tokens, keys and kubeconfigs are what is written most.
   */
  readonly mode?: number | undefined;
  /** The owner. Default: that of the existing regular file as far as the process may give it, else the process. */
  readonly owner?: Owner | undefined;
  /**
   * What a power cut cannot take back once the write is done. `'full'` (default): the new content. `'file'`:
   * old or new content, never an empty or partial file. `'none'`: nothing; only running programs are safe.
   */
  readonly durability?: Durability | undefined;
  /**
   * What to do when the path is a symbolic link. `'follow'` (default): the file it leads to is replaced, or
   * created. `'replace'`: the link becomes a file. `'error'`: nothing is written.
   */
  readonly symlink?: 'follow' | 'replace' | 'error' | undefined;
  /** Touches nothing when bytes, mode and owner are right already; data in pieces is collected in memory. Default false. */
  readonly ifChanged?: boolean | undefined;
  /** Makes missing directories (mode 0777 less the umask). Default false. */
  readonly createDirectory?: boolean | undefined;
  /**
   * Removes what dead writers left in the directory, after each write. Default true; it reads the directory,
   * so for frequent writes into one with 100,000 files turn it off.
   */
  readonly sweep?: boolean | undefined;
  /** The file system. Default: the machine's. */
  readonly fs?: FileSystem | undefined;
}

/** Options of {@link atomicWriteFile}. */
export interface AtomicWriteFileOptions extends AtomicWriteFileSyncOptions {
  /**
   * Of several calls to the same path that wait for an earlier one, only the newest writes and the others take
   * its result, if all of them say so. Default false: each writes, in the order of the calls.
   */
  readonly coalesce?: boolean | undefined;
  /** Aborting before the rename leaves nothing behind, and rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Default: the machine's. */
  readonly clock?: Clock | undefined;
  /** Spreads the attempts of a rename. Default: the machine's. */
  readonly random?: Random | undefined;
}

/**
 * Replaces a file, or creates it: whoever reads it sees the old bytes or the new bytes, never a part, never
 * nothing; and when the promise resolves, the new bytes survive a power cut (`durability`). Calls to the same
 * path run one after another. Hard links, ACLs and extended attributes of the old file are lost.
 *
 * @param data must not be changed until the promise settles.
 * @throws {WriteError} when it cannot be written: `step` says where, `published` whether readers see it.
 * @throws {TypeError | RangeError} for a wrong argument.
 * @throws the signal's reason when aborted.
 */
export async function atomicWriteFile(
  path: string,
  data: WriteData,
  options?: AtomicWriteFileOptions,
): Promise<AtomicWriteResult> {
  const settings = resolveOptions('atomicWriteFile', options, OPTIONS);
  const source = new WriteSource('atomicWriteFile', data, { canWait: true });
  const target = absolutePath(checkPath('atomicWriteFile', 'path', path));
  const { coalesce, signal, fs } = settings;
  return processWrites.run(resolve(target), {
    coalesce,
    signal,
    work: (isOvertaken) => {
      const pace = new Pace();
      const { clock, random } = settings;
      const waiting = { clock, random, signal, isOvertaken };
      return runAsync(replaceFile(target, source, settings, pace, waiting), fs, pace.atOnce);
    },
  });
}

/**
 * The same at once, for exit handlers and other places that cannot wait. It does not wait for asynchronous
 * writes to the same path either: those that are not yet at their rename give way and resolve with
 * `written: false`. A rename that Windows refuses for the moment is not tried again.
 *
 * @throws {WriteError} when it cannot be written.
 * @throws {TypeError | RangeError} for a wrong argument; a file system (`fs`) without `sync` is one.
 */
export function atomicWriteFileSync(
  path: string,
  data: SyncWriteData,
  options?: AtomicWriteFileSyncOptions,
): AtomicWriteResult {
  const settings = resolveOptions('atomicWriteFileSync', options, SYNC_OPTIONS);
  const source = new WriteSource('atomicWriteFileSync', data, { canWait: false });
  const target = absolutePath(checkPath('atomicWriteFileSync', 'path', path));
  if (!settings.fs.sync) throw new TypeError('atomicWriteFileSync: option "fs" has no synchronous calls');
  const result = runSync(replaceFile(target, source, settings, new Pace()), settings.fs.sync);
  processWrites.overtake(resolve(target));
  return result;
}

const SYNC_OPTIONS = {
  mode: matching<number | undefined>(undefined, 'an integer from 0 to 0o7777', isMode),
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
