import fs from 'node:fs';
import type { BigIntStats, Dirent, StatsFs } from 'node:fs';
import { promisify } from 'node:util';

/**
 * The file system calls the library makes, in their synchronous form. Descriptors are plain numbers, stats
 * carry bigints (nanoseconds and inodes do not fit a double). Every call throws Node's own errors (`code`,
 * `syscall`, `path`).
 */
export interface FileSystemCalls {
  lstat(path: string): BigIntStats;
  stat(path: string): BigIntStats;
  readlink(path: string): string;
  readdir(path: string): string[];
  /** The same with what each entry is, itself, not what it may lead to. */
  scandir(path: string): Dirent[];
  statfs(path: string): StatsFs;
  open(path: string, flags: number, mode?: number): number;
  fstat(fd: number): BigIntStats;
  /** Reads up to `length` bytes at `position` (-1: where the descriptor stands); 0 at the end of the file. */
  read(fd: number, buffer: Uint8Array, offset: number, length: number, position: number): number;
  /** Writes up to `length` bytes where the descriptor stands; may write fewer. */
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

/** The same calls as promises; `sync` is there when they can also be made at once, without the thread pool. */
export type FileSystem = {
  readonly [K in keyof FileSystemCalls]: (
    ...args: Parameters<FileSystemCalls[K]>
  ) => Promise<ReturnType<FileSystemCalls[K]>>;
} & { readonly sync?: FileSystemCalls };

/** How many links the kernel follows in one path (`path_resolution(7)`). */
export const MAX_LINKS = 40;

const syncCalls: FileSystemCalls = {
  lstat: (path) => fs.lstatSync(path, { bigint: true }),
  stat: (path) => fs.statSync(path, { bigint: true }),
  readlink: (path) => fs.readlinkSync(path),
  readdir: (path) => fs.readdirSync(path),
  scandir: (path) => fs.readdirSync(path, { withFileTypes: true }),
  statfs: (path) => fs.statfsSync(path),
  open: (path, flags, mode) => fs.openSync(path, flags, mode),
  fstat: (fd) => fs.fstatSync(fd, { bigint: true }),
  read: (fd, buffer, offset, length, position) =>
    fs.readSync(fd, buffer, offset, length, position < 0 ? null : position),
  write: (fd, buffer, offset, length) => fs.writeSync(fd, buffer, offset, length, null),
  fchmod: (fd, mode) => fs.fchmodSync(fd, mode),
  fchown: (fd, uid, gid) => fs.fchownSync(fd, uid, gid),
  fsync: (fd) => fs.fsyncSync(fd),
  close: (fd) => fs.closeSync(fd),
  rename: (from, to) => fs.renameSync(from, to),
  unlink: (path) => fs.unlinkSync(path),
  symlink: (target, path) => fs.symlinkSync(target, path),
  mkdir: (path, mode) => {
    fs.mkdirSync(path, { mode });
  },
  rmdir: (path) => fs.rmdirSync(path),
  chmod: (path, mode) => fs.chmodSync(path, mode),
};

// The promises of `node:fs/promises` take longer, as does its FileHandle.
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

/** The machine's own file system. */
export const nodeFileSystem: FileSystem & { readonly sync: FileSystemCalls } = {
  sync: syncCalls,
  lstat: (path) => fs.promises.lstat(path, { bigint: true }),
  stat: (path) => fs.promises.stat(path, { bigint: true }),
  readlink: (path) => readlink(path),
  readdir: (path) => readdir(path),
  scandir: (path) => fs.promises.readdir(path, { withFileTypes: true }),
  statfs: (path) => statfs(path),
  open: (path, flags, mode) => open(path, flags, mode),
  fstat: (fd) => fstat(fd, { bigint: true }),
  read: async (fd, buffer, offset, length, position) =>
    (await read(fd, buffer, offset, length, position < 0 ? null : position)).bytesRead,
  write: async (fd, buffer, offset, length) => (await write(fd, buffer, offset, length, null)).bytesWritten,
  fchmod: (fd, mode) => fchmod(fd, mode),
  fchown: (fd, uid, gid) => fchown(fd, uid, gid),
  fsync: (fd) => fsync(fd),
  close: (fd) => close(fd),
  rename: (from, to) => rename(from, to),
  unlink: (path) => unlink(path),
  symlink: (target, path) => fs.promises.symlink(target, path),
  mkdir: (path, mode) => fs.promises.mkdir(path, { mode }).then(() => undefined),
  rmdir: (path) => rmdir(path),
  chmod: (path, mode) => fs.promises.chmod(path, mode),
};
