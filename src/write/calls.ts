/**
 * The system calls of a write. A call that is answered at once is synchronous, because a trip through the thread pool
 * of Node.js takes longer than writing a small file to memory. A call that may have to wait goes through the pool:
 *
 * | the directory is    | synchronous calls                                    |
 * |---------------------|------------------------------------------------------|
 * | in memory           | all                                                  |
 * | on a local disk     | lookups, reads, and changes of an open file, which   |
 * |                     | memory takes; `fsync` waits for the disk, and every  |
 * |                     | change of a directory for those who hold its lock    |
 * | remote or unknown   | none, since a call may never return                  |
 *
 * More than 64 KiB are read, written or listed as if the place was unknown: copying that much takes some ten
 * microseconds. After each of many items, `HeldDirectory.pause` gives the event loop a turn if this one is spent.
 * `atomicWriteFileSync` makes all calls synchronously.
 */
import { errnoOf } from '../core/errors/errno.js';
import { form, type FileSystem } from '../core/ports/file-system.js';
import type { Call, Lookups } from '../fs/calls.js';
import type { FileSystemKind } from '../fs/file-system-kind.js';
import { callsMayHang } from '../fs/mount-table.js';
import { wait, type Answer, type Steps } from '../core/scheduling/steps.js';
import type { Progress } from './write-error.js';

/** How much has reached the disk when a write is reported as done. */
export type Durability = 'full' | 'file' | 'none';

/** A write under way: how it is done, and how far it is. */
export interface Write extends Progress {
  readonly fs: FileSystem;
  /** Whether all calls are synchronous. */
  readonly isBlocking: boolean;
  readonly durability: Durability;
  readonly createDirectory: boolean;
}

/** Where a directory is: in memory, on a local disk, on a server, or unknown. */
export type Place = FileSystemKind['place'];

const SMALL_BYTES = 65_536;

const AT_ONCE = [
  'lstat',
  'fstat',
  'readlink',
  'readdir',
  'open',
  'read',
  'write',
  'chmod',
  'fchmod',
  'fchown',
  'close',
] as const;

/** `create` is `open` for a new file. */
const MAY_WAIT = ['create', 'fsync', 'rename', 'unlink', 'symlink', 'mkdir', 'rmdir'] as const;

type Name = Exclude<(typeof AT_ONCE)[number] | (typeof MAY_WAIT)[number], 'readdir' | 'readlink'>;

/** The calls of `node:fs` without `Sync` or callback. */
export type Calls = {
  readonly [N in Name]: Call<FileSystem[`${N extends 'create' ? 'open' : N}Sync`]>;
} & Pick<Lookups, 'readdir' | 'readlink'>;

/** The tables of a file system: for what is in memory, for a disk, and for where a call may hang. */
type Tables = Readonly<Record<'memory' | 'disk' | 'unknown', Calls>>;

const known = new WeakMap<FileSystem, Tables>();

/** The calls for a directory at this place; those that read, write or list, for this much. */
export function callsAt(
  place: Place,
  { fs, isBlocking }: Pick<Write, 'fs' | 'isBlocking'>,
  bytes: number | bigint = 0,
): Calls {
  let tables = known.get(fs);
  if (!tables) known.set(fs, (tables = tablesOf(fs)));
  if (isBlocking) return tables.memory;
  if (bytes > SMALL_BYTES || callsMayHang({ place })) return tables.unknown;
  return place === 'memory' ? tables.memory : tables.disk;
}

function tablesOf(fs: FileSystem): Tables {
  const table = (isAtOnce: boolean, isNeverWaiting: boolean): Calls =>
    Object.fromEntries([
      ...AT_ONCE.map((name) => [name, form(fs, name, isAtOnce)]),
      ...MAY_WAIT.map((name) => [name, form(fs, name === 'create' ? 'open' : name, isNeverWaiting)]),
    ]) as Calls;
  return { memory: table(true, true), disk: table(true, false), unknown: table(false, false) };
}

/** Errors that mean that a file system does not support an operation, not that the operation failed. */
export const UNSUPPORTED = ['EPERM', 'EINVAL', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'];

/** The result of a comparison. A file that cannot be read (it is gone, forbidden, leased by its owner) is not equal. */
export function* isEqual(comparison: Steps<boolean>): Steps<boolean> {
  try {
    return yield* comparison;
  } catch (error) {
    if (errnoOf(error) !== undefined) return false;
    throw error;
  }
}

/** Makes a call. Returns whether it succeeded; false if it failed with one of these codes. */
export function* attempt(call: () => Answer<unknown>, tolerated: readonly string[]): Steps<boolean> {
  try {
    yield* wait(call());
    return true;
  } catch (error) {
    if (tolerated.includes(errnoOf(error) ?? '')) return false;
    throw error;
  }
}
