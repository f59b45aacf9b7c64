import type { BigIntStats, Dirent, FSWatcher, StatsFs } from 'node:fs';

/** A path, or its bytes if they are not UTF-8. */
type PathArgument = string | Buffer;

/** Receives the result of a call: an error, or null and the result. */
type Done<T> = (error: NodeJS.ErrnoException | null, result: T) => void;

interface BigIntOptions {
  readonly bigint: true;
}

interface ListingOptions {
  readonly withFileTypes: true;
}

/** The calls of a `FileSystem` whose forms with `Sync` and with a callback differ only in how they return. */
export interface FileSystemCalls {
  stat(path: PathArgument, options: BigIntOptions): BigIntStats;
  fstat(fd: number, options: BigIntOptions): BigIntStats;
  read(fd: number, buffer: Uint8Array, offset: number, length: number, position: number | null): number;
  write(fd: number, buffer: Uint8Array, offset: number, length: number, position: number | null): number;
  close(fd: number): void;
  fchmod(fd: number, mode: number): void;
  fchown(fd: number, uid: number, gid: number): void;
  fsync(fd: number): void;
  chmod(path: PathArgument, mode: number): void;
  rename(from: PathArgument, to: PathArgument): void;
  unlink(path: PathArgument): void;
  symlink(target: PathArgument, path: PathArgument): void;
  mkdir(path: PathArgument, mode: number): void;
  rmdir(path: PathArgument): void;
}

type Synchronous = { [N in keyof FileSystemCalls as `${N}Sync`]: FileSystemCalls[N] };

type WithCallback = {
  [N in keyof FileSystemCalls]: (
    ...args: [...Parameters<FileSystemCalls[N]>, done: Done<ReturnType<FileSystemCalls[N]>>]
  ) => void;
};

/**
 * The calls of `node:fs` that the library makes; replacements such as memfs have them, too. Calls with a callback are
 * made where a file system may hang or a write waits for the device; synchronous calls everywhere else.
 */
export interface FileSystem extends Synchronous, WithCallback {
  lstatSync(
    path: PathArgument,
    options: BigIntOptions & { readonly throwIfNoEntry: false },
  ): BigIntStats | undefined;
  lstat(path: PathArgument, options: BigIntOptions, done: Done<BigIntStats>): void;
  readlinkSync(path: PathArgument): string;
  readlinkSync(path: PathArgument, encoding: 'buffer'): Buffer;
  readlink(path: PathArgument, done: Done<string>): void;
  readlink(path: PathArgument, encoding: 'buffer', done: Done<Buffer>): void;
  readdirSync(path: PathArgument, options: ListingOptions): Dirent[];
  readdirSync(
    path: PathArgument,
    options: ListingOptions & { readonly encoding: 'buffer' },
  ): Dirent<Buffer>[];
  readdir(path: PathArgument, options: ListingOptions, done: Done<Dirent[]>): void;
  readdir(
    path: PathArgument,
    options: ListingOptions & { readonly encoding: 'buffer' },
    done: Done<Dirent<Buffer>[]>,
  ): void;
  openSync(path: PathArgument, flags: number, mode?: number): number;
  open(path: PathArgument, flags: number, mode: number, done: Done<number>): void;
  /** If it is missing, as in memfs, every path counts as local. */
  statfs?(path: PathArgument, done: Done<StatsFs>): void;
  /** For the backend `fs`. If it is missing, that of `node:fs` is used. */
  watch?(path: PathArgument, options: { readonly persistent: boolean }): FSWatcher;
}

export type FileSystemWith<K extends keyof FileSystem> = Pick<FileSystem, K | 'statfs' | 'watch'>;

/** How many links the kernel follows in one path (`path_resolution(7)`). */
export const MAX_LINKS = 40;

/** Makes a call that ends with a callback. */
export function promised<T>(call: (done: Done<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    call((error, result) => (error ? reject(error) : resolve(result)));
  });
}

/** A call in its synchronous form, or as one that returns a promise. */
export function form(fs: object, name: string, isSynchronous: boolean): (...args: unknown[]) => unknown {
  const calls = fs as Record<string, (...args: unknown[]) => unknown>;
  const nameSync = `${name}Sync`;
  if (isSynchronous) return (...args) => calls[nameSync]?.(...args);
  return (...args) => promised((done) => calls[name]?.(...args, done));
}
