/** The options of `atomicWriteFile`, `atomicWriteFileSync` and `AtomicVolume`. */
import type { Clock } from '../core/ports/clock.js';
import type { FileSystem } from '../core/ports/file-system.js';
import { modeOption } from '../core/options/mode.js';
import {
  fileSystem,
  flag,
  matching,
  oneOf,
  PORT_OPTIONS,
  type resolveOptions,
} from '../core/options/options.js';
import { isOwner, type Owner } from './file-attributes.js';
import type { Durability } from './calls.js';

/** Options of {@link atomicWriteFileSync}, and of {@link atomicWriteFile}. */
export interface AtomicWriteFileSyncOptions {
  /**
   * Permission bits, 0 to 0o7777, independent of the umask. A decimal number that looks like octal digits (644) is
   * refused. Default: 0o600 for a new file, because most of what is written is tokens, keys and kubeconfigs; otherwise
   * those of the existing regular file, except that the group gets only what everybody has: if the file has an ACL,
   * which is lost, its group bits are the most that the ACL grants to anybody. `'keep'`: all bits of the existing file,
   * for files without an ACL; the group bits are dropped if the group cannot be kept. In a sticky directory that other
   * users can write to, bits of an existing file count only as far as they are in 0o600.
   */
  readonly mode?: number | 'keep' | undefined;
  /**
   * Default: the owner of the existing regular file, as far as the process may set it; otherwise that of the process.
   */
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
   * Writes nothing if the file already has these bytes, and the `mode` and `owner` where they are given. Data in chunks
   * is collected in memory first. Default false.
   */
  readonly ifChanged?: boolean | undefined;
  /** Creates missing directories (mode 0777 less the umask; their owner can always use them). Default false. */
  readonly createDirectory?: boolean | undefined;
  /**
   * Removes the temporary files of writers that were killed more than a day ago, with the first write of this process
   * to the directory and then about once an hour. Default true. It lists the directory.
   */
  readonly sweep?: boolean | undefined;
  /** Anything with the calls of `node:fs`, which is the default. */
  readonly fs?: FileSystem | undefined;
}

/** Options of {@link atomicWriteFile}. */
export interface AtomicWriteFileOptions extends AtomicWriteFileSyncOptions {
  /** Aborting before the rename leaves nothing behind and rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Default: the system's clock. */
  readonly clock?: Clock | undefined;
}

/** The options that a file and a volume have in common. */
export const SHARED_OPTIONS = {
  owner: matching<Owner | undefined>(undefined, 'an object { uid, gid } of user and group IDs', isOwner),
  durability: oneOf<Durability>('full', ['full', 'file', 'none']),
  createDirectory: flag(false),
};

export const SYNC_OPTIONS = {
  ...SHARED_OPTIONS,
  mode: modeOption<'keep' | undefined>(undefined, 'keep'),
  symlink: oneOf<'follow' | 'replace' | 'error'>('follow', ['follow', 'replace', 'error']),
  ifChanged: flag(false),
  sweep: flag(true),
  fs: fileSystem<keyof FileSystem>('open', 'openSync', 'write', 'writeSync', 'rename', 'renameSync'),
};

/** How to replace a file. */
export type ReplaceSettings = ReturnType<typeof resolveOptions<typeof SYNC_OPTIONS>>;

export const OPTIONS = {
  ...SYNC_OPTIONS,
  signal: PORT_OPTIONS.signal,
  clock: PORT_OPTIONS.clock,
};
