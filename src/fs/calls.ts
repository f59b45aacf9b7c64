/** The calls of `node:fs` that reading needs, and combinations of them. */
import type { BigIntStats, Dirent } from 'node:fs';

import { constants } from '../core/ports/builtins.js';
import { form, type FileSystem, type FileSystemWith } from '../core/ports/file-system.js';
import { mayHaveLostBytes, pathFromBytes } from '../core/ports/path-bytes.js';
import { insideTarget, pathForCall } from '../core/ports/platform-path.js';
import { wait, type Answer, type Steps } from '../core/scheduling/steps.js';
import { isSameInode, isUnchanged } from './file-identity.js';

export const READING_CALLS = [
  'lstatSync',
  'lstat',
  'readlinkSync',
  'readlink',
  'readdirSync',
  'readdir',
  'openSync',
  'open',
  'fstatSync',
  'fstat',
  'readSync',
  'read',
  'closeSync',
  'close',
] as const satisfies readonly (keyof FileSystem)[];

/** The calls of `node:fs` that reading needs. */
export type ReadingCalls = FileSystemWith<(typeof READING_CALLS)[number]>;

/** The calls that {@link readProc} needs. */
export type ProcCalls = Pick<FileSystem, 'openSync' | 'readSync' | 'closeSync'>;

type Path = string | Buffer;
/** A call of `node:fs` that returns its answer, or a promise of it. */
export type Call<F> = F extends (...args: infer A) => infer R ? (...args: A) => Answer<R> : never;

/** These calls without `Sync` and callback: each returns its answer, or a promise of it. */
export type Lookups = {
  readonly [N in 'lstat' | 'open' | 'fstat' | 'read' | 'close']: Call<FileSystem[`${N}Sync`]>;
} & {
  readonly readlink: {
    (path: Path): Answer<string>;
    (path: Path, encoding: 'buffer'): Answer<Buffer>;
  };
  readonly readdir: {
    (path: Path, options: typeof ENTRIES_IN_BYTES): Answer<Dirent<Buffer>[]>;
    (path: Path, options: typeof ENTRIES): Answer<Dirent[]>;
  };
};

/** A file that was read. */
export interface Reading {
  readonly stat: BigIntStats;
  /** Undefined if the file is larger than the limit or not a regular file. */
  readonly bytes: Buffer | undefined;
  /** Whether the file was the same before and after reading. */
  readonly isSteady: boolean;
}

/**
 * A pipe (O_NONBLOCK) or a link (O_NOFOLLOW) may have replaced the file that was found. On Windows both flags are
 * undefined, which counts as 0.
 */
const READ_ONLY = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;

/**
 * How often a file is read whose inode changes meanwhile, but not its size and its time of modification: probably only its
 * owner or mode. Before a swap, kubelet gives the `fsGroup` the files of the old revision, too.
 */
const MAX_READS = 4;

/** For files that do not report their size, as in /proc. */
const CHUNK_BYTES = 65_536;

const STAT = { bigint: true } as const;
const STAT_IF_ANY = { bigint: true, throwIfNoEntry: false } as const;
const ENTRIES = { withFileTypes: true } as const;
const ENTRIES_IN_BYTES = { withFileTypes: true, encoding: 'buffer' } as const;

const NAMES = ['lstat', 'readlink', 'readdir', 'open', 'fstat', 'read', 'close'];

/** The calls of a file system. @param isSynchronous whether they return answers, or promises. */
export function lookupsOf(fs: ReadingCalls, isSynchronous: boolean): Lookups {
  return Object.fromEntries(NAMES.map((name) => [name, form(fs, name, isSynchronous)])) as unknown as Lookups;
}

export function lstat(calls: Lookups, path: string): Answer<BigIntStats | undefined> {
  return calls.lstat(pathForCall(path), STAT_IF_ANY);
}

/** The target of a link. */
export function* readlink(calls: Pick<Lookups, 'readlink'>, path: string): Steps<string> {
  const target = yield* wait(calls.readlink(pathForCall(path)));
  if (insideTarget) return insideTarget(target, path);
  return mayHaveLostBytes(target)
    ? pathFromBytes(yield* wait(calls.readlink(pathForCall(path), 'buffer')))
    : target;
}

/** The entries of a directory with their kinds. */
export function* list(calls: Pick<Lookups, 'readdir'>, path: string): Steps<Dirent[]> {
  const entries = yield* wait(calls.readdir(pathForCall(path), ENTRIES));
  if (!entries.some(({ name }) => mayHaveLostBytes(name))) return entries;
  return (yield* wait(calls.readdir(pathForCall(path), ENTRIES_IN_BYTES))).map(withTextName);
}

/**
 * Reads a file without following a link. A file larger than `maxBytes` is not read.
 * @param found the file at the path, if the caller knows. If another file is there by now, the result is undefined.
 */
export function* readContents(
  calls: Lookups,
  path: string,
  maxBytes: number,
  found?: BigIntStats,
): Steps<Reading | undefined> {
  const fd = yield* wait(calls.open(pathForCall(path), READ_ONLY, 0));
  try {
    let before = found ?? (yield* wait(calls.fstat(fd, STAT)));
    const { size } = before;
    if (!before.isFile() || size > maxBytes) return { stat: before, bytes: undefined, isSteady: true };
    for (let reads = 1; ; reads += 1) {
      const content = yield* contentOf(calls, fd, Number(size), maxBytes, reads > 1);
      const after = yield* wait(calls.fstat(fd, STAT));
      if (!isSameInode(before, after)) return undefined;
      const isSteady = isUnchanged(before, after);
      const isWritten = after.size !== size || after.mtimeNs !== before.mtimeNs;
      if (isSteady || isWritten || reads === MAX_READS)
        return { stat: after, bytes: content.length > maxBytes ? undefined : content, isSteady };
      before = after;
    }
  } finally {
    yield* wait(calls.close(fd));
  }
}

/**
 * A file of `/proc`, a character for each byte; undefined if it cannot be read. Never hangs, because the kernel answers
 * from memory.
 */
export function readProc(fs: ProcCalls, path: string): string | undefined {
  try {
    const fd = fs.openSync(path, constants.O_RDONLY);
    try {
      let text = '';
      for (;;) {
        const count = fs.readSync(fd, chunk, 0, CHUNK_BYTES, null);
        if (count === 0) return text;
        text += chunk.toString('latin1', 0, count);
      }
    } finally {
      fs.closeSync(fd);
    }
  } catch {
    return undefined;
  }
}

/** For all readings of `/proc`, each of which is synchronous. */
const chunk = Buffer.allocUnsafe(CHUNK_BYTES);

/** What a file contains. @param size 0 if it is not known. @param isAgain whether it has been read from this descriptor. */
function* contentOf(
  calls: Lookups,
  fd: number,
  size: number,
  maxBytes: number,
  isAgain: boolean,
): Steps<Buffer> {
  let bytes: Buffer = Buffer.allocUnsafe(size || CHUNK_BYTES);
  let length = 0;
  while (length < bytes.length) {
    // Not every file system can read from a position.
    const position = isAgain ? length : null;
    const count = yield* wait(calls.read(fd, bytes, length, bytes.length - length, position));
    if (count === 0) break;
    length += count;
    if (size === 0 && length <= maxBytes && length === bytes.length)
      bytes = Buffer.concat([bytes, Buffer.allocUnsafe(Math.min(length, maxBytes + 1 - length))]);
  }
  // A view would keep the larger buffer in memory.
  return length === bytes.length ? bytes : Buffer.from(bytes.subarray(0, length));
}

/** The same entry with its name as it appears in paths. */
function withTextName(entry: Dirent<Buffer>): Dirent {
  return Object.assign(entry as unknown as Dirent, { name: pathFromBytes(entry.name) });
}
