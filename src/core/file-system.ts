import fs from 'node:fs';
import type { BigIntStats, Dir, Dirent, StatsFs } from 'node:fs';
import { promisify } from 'node:util';

import { mayHaveLostBytes, pathForCall, pathFromBytes } from './path-bytes.js';

/** An open directory; opaque to everything but the file system that opened it. */
export type OpenDirectory = object;

/**
 * The file system calls that the library makes, in their synchronous form. Descriptors are plain numbers; stats
 * carry bigints (nanoseconds and inodes do not fit a double). Every call throws Node's own errors (`code`,
 * `syscall`, `path`). A byte of a name that is not UTF-8 is a lone surrogate in a path, U+DC80 to U+DCFF.
 */
export interface FileSystemCalls {
  lstat(path: string): BigIntStats;
  stat(path: string): BigIntStats;
  readlink(path: string): string;
  readdir(path: string): string[];
  /** The entries with their types; links are not followed. */
  scandir(path: string): Dirent[];
  /** Opens a directory for listing in portions. */
  opendir(path: string): OpenDirectory;
  /** The next entries of the directory, at most a thousand; none at its end. */
  readEntries(directory: OpenDirectory): Dirent[];
  closedir(directory: OpenDirectory): void;
  statfs(path: string): StatsFs;
  open(path: string, flags: number, mode?: number): number;
  fstat(fd: number): BigIntStats;
  /** Reads up to `length` bytes at `position` (-1: the current position); 0 at the end of the file. */
  read(fd: number, buffer: Uint8Array, offset: number, length: number, position: number): number;
  /** Writes up to `length` bytes at the current position; may write fewer. */
  write(fd: number, buffer: Uint8Array, offset: number, length: number): number;
  fchmod(fd: number, mode: number): void;
  fchown(fd: number, uid: number, gid: number): void;
  fsync(fd: number): void;
  close(fd: number): void;
  rename(from: string, to: string): void;
  unlink(path: string): void;
  symlink(target: string, path: string): void;
  mkdir(path: string, mode: number): void;
  rmdir(path: string): void;
  chmod(path: string, mode: number): void;
}

/** The same calls as promises. `sync` is present if they can also be made synchronously. */
export type FileSystem = {
  readonly [K in keyof FileSystemCalls]: (
    ...args: Parameters<FileSystemCalls[K]>
  ) => Promise<ReturnType<FileSystemCalls[K]>>;
} & { readonly sync?: FileSystemCalls };

/** How many links the kernel follows in one path (`path_resolution(7)`). */
export const MAX_LINKS = 40;

/** Listing this many entries takes about a millisecond. */
const ENTRIES_AT_ONCE = 1_000;

const syncCalls: FileSystemCalls = {
  lstat: (path) => fs.lstatSync(pathForCall(path), { bigint: true }),
  stat: (path) => fs.statSync(pathForCall(path), { bigint: true }),
  readlink: (path) => {
    const at = pathForCall(path);
    const target = fs.readlinkSync(at);
    return mayHaveLostBytes(target) ? pathFromBytes(fs.readlinkSync(at, 'buffer')) : target;
  },
  readdir: (path) => {
    const at = pathForCall(path);
    const names = fs.readdirSync(at);
    return names.some(mayHaveLostBytes) ? fs.readdirSync(at, 'buffer').map(pathFromBytes) : names;
  },
  scandir: (path) => {
    const at = pathForCall(path);
    const entries = fs.readdirSync(at, { withFileTypes: true });
    return entries.some(({ name }) => mayHaveLostBytes(name))
      ? fs.readdirSync(at, { withFileTypes: true, encoding: 'buffer' }).map(withTextName)
      : entries;
  },
  opendir: (path) => fs.opendirSync(pathForCall(path), { bufferSize: ENTRIES_AT_ONCE }),
  readEntries: (directory) => {
    const entries: Dirent[] = [];
    while (entries.length < ENTRIES_AT_ONCE) {
      const entry = (directory as Dir).readSync();
      if (!entry) break;
      entries.push(entry);
    }
    return entries;
  },
  closedir: (directory) => (directory as Dir).closeSync(),
  statfs: (path) => fs.statfsSync(pathForCall(path)),
  open: (path, flags, mode) => fs.openSync(pathForCall(path), flags, mode),
  fstat: (fd) => fs.fstatSync(fd, { bigint: true }),
  read: (fd, buffer, offset, length, position) =>
    fs.readSync(fd, buffer, offset, length, position < 0 ? null : position),
  write: (fd, buffer, offset, length) => fs.writeSync(fd, buffer, offset, length, null),
  fchmod: (fd, mode) => fs.fchmodSync(fd, mode),
  fchown: (fd, uid, gid) => fs.fchownSync(fd, uid, gid),
  fsync: (fd) => fs.fsyncSync(fd),
  close: (fd) => fs.closeSync(fd),
  rename: (from, to) => fs.renameSync(pathForCall(from), pathForCall(to)),
  unlink: (path) => fs.unlinkSync(pathForCall(path)),
  symlink: (target, path) => fs.symlinkSync(pathForCall(target), pathForCall(path)),
  mkdir: (path, mode) => {
    fs.mkdirSync(pathForCall(path), { mode });
  },
  rmdir: (path) => fs.rmdirSync(pathForCall(path)),
  chmod: (path, mode) => fs.chmodSync(pathForCall(path), mode),
};

/** The same entry with its name as it appears in paths. */
function withTextName(entry: fs.Dirent<Buffer>): Dirent {
  return Object.assign(entry as unknown as Dirent, { name: pathFromBytes(entry.name) });
}

// The promises of `node:fs/promises` and its FileHandle are slower.
const readlink = promisify(fs.readlink);
const readdir = promisify(fs.readdir);
const statfs = promisify(fs.statfs);
const rename = promisify(fs.rename);
const unlink = promisify(fs.unlink);
const rmdir = promisify(fs.rmdir);
const open = promisify(fs.open);
const fstat = promisify(fs.fstat);
const read = promisify(fs.read);
const write = promisify(fs.write);
const fchmod = promisify(fs.fchmod);
const fchown = promisify(fs.fchown);
const fsync = promisify(fs.fsync);
const close = promisify(fs.close);

/** The real file system. */
export const nodeFileSystem: FileSystem & { readonly sync: FileSystemCalls } = {
  sync: syncCalls,
  lstat: (path) => fs.promises.lstat(pathForCall(path), { bigint: true }),
  stat: (path) => fs.promises.stat(pathForCall(path), { bigint: true }),
  readlink: async (path) => {
    const at = pathForCall(path);
    const target = await readlink(at);
    return mayHaveLostBytes(target) ? pathFromBytes(await fs.promises.readlink(at, 'buffer')) : target;
  },
  readdir: async (path) => {
    const at = pathForCall(path);
    const names = await readdir(at);
    return names.some(mayHaveLostBytes)
      ? (await fs.promises.readdir(at, 'buffer')).map(pathFromBytes)
      : names;
  },
  scandir: async (path) => {
    const at = pathForCall(path);
    const entries = await fs.promises.readdir(at, { withFileTypes: true });
    return entries.some(({ name }) => mayHaveLostBytes(name))
      ? (await fs.promises.readdir(at, { withFileTypes: true, encoding: 'buffer' })).map(withTextName)
      : entries;
  },
  opendir: (path) => fs.promises.opendir(pathForCall(path), { bufferSize: ENTRIES_AT_ONCE }),
  readEntries: async (directory) => {
    const entries: Dirent[] = [];
    while (entries.length < ENTRIES_AT_ONCE) {
      const entry = await (directory as Dir).read();
      if (!entry) break;
      entries.push(entry);
    }
    return entries;
  },
  closedir: (directory) => (directory as Dir).close(),
  statfs: (path) => statfs(pathForCall(path)),
  open: (path, flags, mode) => open(pathForCall(path), flags, mode),
  fstat: (fd) => fstat(fd, { bigint: true }),
  read: async (fd, buffer, offset, length, position) =>
    (await read(fd, buffer, offset, length, position < 0 ? null : position)).bytesRead,
  write: async (fd, buffer, offset, length) => (await write(fd, buffer, offset, length, null)).bytesWritten,
  fchmod: (fd, mode) => fchmod(fd, mode),
  fchown: (fd, uid, gid) => fchown(fd, uid, gid),
  fsync: (fd) => fsync(fd),
  close: (fd) => close(fd),
  rename: (from, to) => rename(pathForCall(from), pathForCall(to)),
  unlink: (path) => unlink(pathForCall(path)),
  symlink: (target, path) => fs.promises.symlink(pathForCall(target), pathForCall(path)),
  mkdir: (path, mode) => fs.promises.mkdir(pathForCall(path), { mode }).then(() => undefined),
  rmdir: (path) => rmdir(pathForCall(path)),
  chmod: (path, mode) => fs.promises.chmod(pathForCall(path), mode),
};
