/** The calls of `node:fs` that reading needs, and combinations of them. */
import { constants, type BigIntStats, type Dirent } from 'node:fs';

import { promised, type FileSystem, type FileSystemWith } from '../core/file-system.js';
import { mayHaveLostBytes, pathForCall, pathFromBytes } from '../core/path-bytes.js';
import { isSameInode } from './file-identity.js';

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

/** For files that do not report their size, as in /proc. */
const CHUNK_BYTES = 65_536;

const STAT = { bigint: true } as const;
const STAT_IF_ANY = { bigint: true, throwIfNoEntry: false } as const;
const ENTRIES = { withFileTypes: true } as const;
const ENTRIES_IN_BYTES = { withFileTypes: true, encoding: 'buffer' } as const;

export function lstatNow(fs: ReadingCalls, path: string): BigIntStats | undefined {
  return fs.lstatSync(pathForCall(path), STAT_IF_ANY);
}

export function lstatSoon(fs: ReadingCalls, path: string): Promise<BigIntStats> {
  return promised((done) => fs.lstat(pathForCall(path), STAT, done));
}

/** The target of a link. */
export function readlinkNow(fs: ReadingCalls, path: string): string {
  const target = fs.readlinkSync(pathForCall(path));
  return mayHaveLostBytes(target) ? pathFromBytes(fs.readlinkSync(pathForCall(path), 'buffer')) : target;
}

export async function readlinkSoon(fs: ReadingCalls, path: string): Promise<string> {
  const target = await promised<string>((done) => fs.readlink(pathForCall(path), done));
  if (!mayHaveLostBytes(target)) return target;
  return pathFromBytes(await promised<Buffer>((done) => fs.readlink(pathForCall(path), 'buffer', done)));
}

/** The entries of a directory with their kinds. */
export function listNow(fs: ReadingCalls, path: string): Dirent[] {
  const entries = fs.readdirSync(pathForCall(path), ENTRIES);
  if (!entries.some(hasLostBytes)) return entries;
  const named = fs.readdirSync(pathForCall(path), ENTRIES_IN_BYTES) as unknown as Dirent<Buffer>[];
  return named.map(withTextName);
}

export async function listSoon(fs: ReadingCalls, path: string): Promise<Dirent[]> {
  const entries = await promised<Dirent[]>((done) => fs.readdir(pathForCall(path), ENTRIES, done));
  if (!entries.some(hasLostBytes)) return entries;
  const named = await promised<Dirent<Buffer>[]>((done) =>
    fs.readdir(pathForCall(path), ENTRIES_IN_BYTES, done),
  );
  return named.map(withTextName);
}

/**
 * Reads a file without following a link. A file larger than `maxBytes` is not read.
 * @param found the file at the path, if the caller knows. If another file is there by now, the result is undefined.
 */
export function readNow(
  fs: ReadingCalls,
  path: string,
  maxBytes: number,
  found?: BigIntStats,
): Reading | undefined {
  const fd = fs.openSync(pathForCall(path), READ_ONLY);
  try {
    const before = found ?? fs.fstatSync(fd, STAT);
    const size = Number(before.size);
    if (!before.isFile() || size > maxBytes) return { stat: before, bytes: undefined, isSteady: true };
    let bytes: Buffer = Buffer.allocUnsafe(size || CHUNK_BYTES);
    let length = 0;
    while (length < bytes.length) {
      const count = fs.readSync(fd, bytes, length, bytes.length - length, null);
      if (count === 0) break;
      length += count;
      if (size === 0 && length <= maxBytes) bytes = withRoom(bytes, length);
    }
    return readingOf(bytes, length, before, fs.fstatSync(fd, STAT), maxBytes);
  } finally {
    fs.closeSync(fd);
  }
}

export async function readSoon(
  fs: ReadingCalls,
  path: string,
  maxBytes: number,
  found?: BigIntStats,
): Promise<Reading | undefined> {
  const fd = await promised<number>((done) => fs.open(pathForCall(path), READ_ONLY, 0, done));
  try {
    const before = found ?? (await promised<BigIntStats>((done) => fs.fstat(fd, STAT, done)));
    const size = Number(before.size);
    if (!before.isFile() || size > maxBytes) return { stat: before, bytes: undefined, isSteady: true };
    let bytes: Buffer = Buffer.allocUnsafe(size || CHUNK_BYTES);
    let length = 0;
    while (length < bytes.length) {
      const [chunk, from] = [bytes, length];
      const count = await promised<number>((done) =>
        fs.read(fd, chunk, from, chunk.length - from, null, done),
      );
      if (count === 0) break;
      length += count;
      if (size === 0 && length <= maxBytes) bytes = withRoom(bytes, length);
    }
    const after = await promised<BigIntStats>((done) => fs.fstat(fd, STAT, done));
    return readingOf(bytes, length, before, after, maxBytes);
  } finally {
    await promised((done) => fs.close(fd, done));
  }
}

function withRoom(bytes: Buffer, length: number): Buffer {
  return length < bytes.length ? bytes : Buffer.concat([bytes, Buffer.allocUnsafe(CHUNK_BYTES)]);
}

function readingOf(
  bytes: Buffer,
  length: number,
  before: BigIntStats,
  after: BigIntStats,
  maxBytes: number,
): Reading | undefined {
  if (!isSameInode(before, after)) return undefined;
  const { size, mtimeNs, ctimeNs } = before;
  const isSteady = after.size === size && after.mtimeNs === mtimeNs && after.ctimeNs === ctimeNs;
  // A view would keep the larger buffer in memory.
  const content = length === bytes.length ? bytes : Buffer.from(bytes.subarray(0, length));
  return { stat: after, bytes: length > maxBytes ? undefined : content, isSteady };
}

function hasLostBytes({ name }: Dirent): boolean {
  return mayHaveLostBytes(name);
}

/** The same entry with its name as it appears in paths. */
function withTextName(entry: Dirent<Buffer>): Dirent {
  return Object.assign(entry as unknown as Dirent, { name: pathFromBytes(entry.name) });
}
