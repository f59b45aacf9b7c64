/**
 * What the library asks of the world: time, chance, a file system and a source of hints. Each has its real
 * version here and can be replaced through an option of the same name.
 */
import fs from 'node:fs';
import type { BigIntStats, Dirent, StatsFs } from 'node:fs';
import { promisify } from 'node:util';

// ---------------------------------------------------------------------------------------------------- time

/** A callback that waits for its time. */
export interface Scheduled {
  /** Stops it; harmless when it has run or was cancelled already. */
  cancel(): void;
}

/** The only door to time. */
export interface Clock {
  /** Wall clock, epoch ms. May jump either way. */
  now(): number;
  /** A clock that only goes forward, ms since an arbitrary moment. */
  monotonic(): number;
  /**
   * Runs `callback` once after `delayMs` (any finite length; below 0 counts as 0). With `ref: false` the wait
   * does not keep the process alive.
   */
  schedule(callback: () => void, delayMs: number, options?: { readonly ref?: boolean }): Scheduled;
}

/** Above this `setTimeout` fires at once instead of late. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The machine's own clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  schedule(callback, delayMs, { ref = true } = {}) {
    let timer: NodeJS.Timeout;
    const arm = (remainingMs: number): void => {
      const sliceMs = Math.min(remainingMs, LONGEST_TIMER_MS);
      timer = setTimeout(() => (remainingMs > sliceMs ? arm(remainingMs - sliceMs) : callback()), sliceMs);
      if (!ref) timer.unref();
    };
    arm(Math.max(0, delayMs));
    return { cancel: () => clearTimeout(timer) };
  },
};

/**
 * Epoch ms of an RFC 3339 timestamp as the API server writes it, of a `Date` or of epoch ms; NaN for anything
 * else.
 */
export function parseTimestamp(value: unknown): number {
  if (value instanceof Date) return value.getTime();
  if (typeof value === 'number') return value;
  // `Date.parse` alone would take "1" for a year and a date without a zone for local time.
  const isTimestamp = typeof value === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/i.test(value);
  return isTimestamp ? Date.parse(value) : Number.NaN;
}

/** `epochMs` in ISO 8601, UTC, as people and names want it. */
export const isoTime = (epochMs: number): string => new Date(epochMs).toISOString();

// -------------------------------------------------------------------------------------------------- chance

/** A number in [0, 1). */
export type Random = () => number;

/** The machine's own chance. Not for secrets. */
export const systemRandom: Random = () => Math.random();

// --------------------------------------------------------------------------------------------- file system

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

// --------------------------------------------------------------------------------------------------- hints

/** A directory that was consulted while a target's path was resolved. */
export interface WatchedDirectory {
  /** Absolute, with every link on the way resolved. */
  readonly path: string;
  /** Which directory stands at that path: changes when another one takes its place. */
  readonly identity: string;
  /** In an ancestor only these entries matter; undefined: every entry does. */
  readonly entries?: ReadonlySet<string>;
  /** It is part of a tree that is watched whole; undefined: what is below it does not matter. */
  readonly tree?: WatchedTree;
}

/** A directory that is watched with all that is below it. Each directory in it is listed, too. */
export interface WatchedTree {
  /** Its top: absolute, with every link on the way resolved. */
  readonly root: string;
  /** Globs relative to the root, see `PathGlobs`: what they match, and what is below that, does not matter. */
  readonly ignore: readonly string[];
}

/** Where a backend says what it has to say. */
export interface HintSink {
  /**
   * Something may have changed: look again. Never wrong, at worst in vain.
   * @param written the name of an entry whose bytes were changed in place, if the kernel says so.
   * @param path the entry that it is about, absolute; undefined: it may be about anything. About a directory, it is
   * about all that is below.
   */
  hint(written?: string, path?: string): void;
  /** The subscription is dead: close it and subscribe anew. */
  down(error: unknown): void;
}

/** A live subscription of a backend. */
export interface WatchSubscription {
  /**
   * Watches exactly these directories from now on. Called after every look, mostly with what is watched
   * already, so it must be cheap then. Returns the paths of the directories that were opened because they were
   * not watched before: the watcher looks there again, since something may have happened in between. (Of a tree
   * that is opened as one, its root.) May throw the errno error of the directory that could not be watched;
   * `ENOENT` and `ENOTDIR` mean that it moved meanwhile.
   */
  aim(directories: readonly WatchedDirectory[]): readonly string[] | Promise<readonly string[]>;
  /** Stops every hint. Must not throw. */
  close(): void | Promise<void>;
}

/** A source of hints. It need not be right about what happened, only soon. */
export interface WatchBackend {
  /** Shown as `backend` in `status()` and as `cause` of the changes it led to. */
  readonly name: string;
  /**
   * Every write in place is told by name. Then a new file that nobody was seen writing was renamed into place,
   * and is reported at once; otherwise it has to settle first. Default false.
   */
  readonly tellsWrites?: boolean;
  /**
   * `persistent: false` means that watching must not keep the process alive. It must come to an end: `close()` of a
   * watcher waits for it, to give back what it grants.
   */
  subscribe(
    sink: HintSink,
    options: { readonly persistent: boolean },
  ): WatchSubscription | Promise<WatchSubscription>;
}

// -------------------------------------------------------------------------------------------------- tokens

/** What is asked of the TokenRequest API. */
export interface TokenRequest {
  /** Empty: the API server's own audience. */
  readonly audiences: readonly string[];
  /** The server may give a shorter or, for audiences of its own, a longer one. */
  readonly expirationSeconds: number;
}

/** What the TokenRequest API answers: its `status`. */
export interface TokenAnswer {
  readonly token: string;
  /** RFC 3339, a `Date`, or epoch ms. */
  readonly expirationTimestamp: string | Date | number;
}

/**
 * Asks an API server for tokens. It should read its own credentials anew for each request: what it
 * authenticates with expires too.
 */
export interface TokenClient {
  /**
   * Rejects with anything when there is no token. A finite `retryAfterMs` on what it rejects with is honoured;
   * `code` `ERR_TOKEN_UNSUPPORTED` (a `TokenError`) says that the server has no TokenRequest API at all.
   */
  requestToken(request: TokenRequest, options: { readonly signal: AbortSignal }): Promise<TokenAnswer>;
}
