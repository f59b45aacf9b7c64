/**
 * May I call synchronously here? A call on a cached local file takes a few microseconds, and 50–100 through the thread
 * pool; a synchronous call on a dead NFS or FUSE server blocks the event loop indefinitely. So only file systems that
 * are known to be local are called synchronously:
 *
 * | file system                      | checks of watchers ({@link Locality}) | writes ({@link SynchronousCalls})      |
 * |----------------------------------|---------------------------------------|----------------------------------------|
 * | in memory                        | all calls                             | all, of up to 64 KiB                   |
 * | on a disk                        | all calls                             | lookups; a change may wait for its journal |
 * | read-only, or the kernel's own   | all calls                             | none                                   |
 * | remote or unknown                | none                                  | none                                   |
 *
 * The mount table is read first: if everything in it is local, no path leads anywhere else, whatever links are on the
 * way. Otherwise a watcher asks `statfs`, asynchronously, at every directory where a file system begins, and keeps the
 * answers, and a write asks `statfs` about its own directory, each time. One risk remains: a server that is mounted
 * over a directory of the path and dies before the next check, or within `TABLE_AGE_MS`.
 */
import { constants, type BigIntStats } from 'node:fs';

import { systemClock } from '../core/clock.js';
import type { FileSystem, FileSystemCalls } from '../core/file-system.js';
import { runSync, type Call, type Effects } from './effects.js';
import { kindAt, kindOfType, type FileSystemKind } from './file-system-kind.js';
import type { LinkChain } from './link-chain.js';
import { readMounts } from './mount-table.js';

const NO_MOUNTS: ReadonlyMap<string, string> = new Map();

/** What is known of the file systems that a path leads through. */
export class Locality {
  /** The mounts of the last chain that could be identified, by the identity of the directory at which they begin. */
  #identified = NO_MOUNTS;
  /** Those of them that may be entered synchronously. */
  #local = NO_MOUNTS;
  /** The names of those that report no events. */
  #silent = NO_MOUNTS;
  readonly #platform: NodeJS.Platform;

  /** @param platform anything but Linux: nothing is known to be local. */
  constructor(platform: NodeJS.Platform = process.platform) {
    this.#platform = platform;
  }

  /** The mounts that may be entered synchronously. */
  get local(): ReadonlyMap<string, unknown> {
    return this.#local;
  }

  /** Whether the whole chain may be followed synchronously. One without any mount is not known. */
  isLocal({ mounts }: LinkChain): boolean {
    for (const identity of mounts.keys()) if (!this.#local.has(identity)) return false;
    return mounts.size > 0;
  }

  /** The name of a file system on the way that reports no events, if there is one. */
  silentFileSystem({ mounts }: LinkChain): string | undefined {
    if (this.#silent.size === 0) return undefined;
    for (const identity of mounts.keys()) {
      const name = this.#silent.get(identity);
      if (name !== undefined) return name;
    }
    return undefined;
  }

  /**
   * Identifies the mounts of the chain that are not known yet, and forgets all others: numbers of devices are reused, so
   * what comes back may be another file system. To be run asynchronously, unless everything is local.
   */
  *classify({ mounts }: LinkChain): Effects<void> {
    if (mounts === this.#identified) return;
    const identified = new Map<string, string>();
    const local = new Map<string, string>();
    const silent = new Map<string, string>();
    for (const [identity, path] of mounts) {
      if (this.#identified.has(identity)) {
        const name = this.#silent.get(identity);
        identified.set(identity, path);
        if (this.#local.has(identity)) local.set(identity, path);
        if (name !== undefined) silent.set(identity, name);
        continue;
      }
      try {
        const kind = yield* kindAt(path, this.#platform);
        identified.set(identity, path);
        if (kind?.place === 'remote') silent.set(identity, kind.name);
        else if (kind) local.set(identity, path);
      } catch {
        // Gone or unreadable: it stays unknown, so it is called asynchronously and identified by the next check.
      }
    }
    // What all of them are is the map that the chain has in common with others.
    this.#identified = identified.size === mounts.size ? mounts : identified;
    this.#local = local.size === mounts.size ? mounts : local;
    this.#silent = silent.size > 0 ? silent : NO_MOUNTS;
  }
}

const { O_DIRECTORY = 0 } = constants as Partial<typeof constants>;

/** What a local disk answers from memory. */
const LOOKUPS: ReadonlySet<Call[0]> = new Set<Call[0]>(['lstat', 'stat', 'fstat', 'readlink', 'close']);

/** A directory of this size is one block on a disk, or 200 entries in memory (20 bytes each). */
const SMALL_DIRECTORY_BYTES = 4096n;

/** Copying this much takes some ten microseconds; more is copied outside the event loop. */
export const SMALL_BYTES = 65_536;

/** The calls of one write: the directory that it works in, and which calls may be synchronous there. */
export class SynchronousCalls {
  #place: 'memory' | 'disk' | 'unknown' = 'unknown';
  /** What the mount table says, if everything in it is local. */
  #mounts: LocalMounts | undefined;
  /** A small directory, as it is listed. */
  #small: string | undefined;
  readonly #platform: NodeJS.Platform;
  /** The file system that makes the calls. */
  readonly fs: FileSystem;

  /** @param platform anything but Linux: no call is made synchronously. */
  constructor(fs: FileSystem, platform: NodeJS.Platform = process.platform) {
    this.fs = fs;
    this.#platform = platform;
  }

  /** Whether the write is to a local disk. */
  get isOnDisk(): boolean {
    return this.#place === 'disk';
  }

  /** Whether the write is to a file system of this kernel. */
  get isLocal(): boolean {
    return this.#place !== 'unknown';
  }

  /** Whether the write is to memory. */
  get isInMemory(): boolean {
    return this.#place === 'memory';
  }

  /**
   * The time of the file system's own clock, ns. Only that of a local file system is known: it is the kernel's, which
   * this process has, too.
   */
  get now(): bigint | undefined {
    return this.isLocal ? BigInt(systemClock.now()) * 1_000_000n : undefined;
  }

  /** To be run before the directory at this path is opened. */
  *approach(path: string): Effects<void> {
    if (!this.approachNow()) yield* this.#identify(path);
  }

  /** The same if the mount table is enough: then it returns the calls with which the directory may be opened. */
  approachNow(): FileSystemCalls | undefined {
    this.#small = undefined;
    this.#mounts = localMounts(this.fs, this.#platform);
    // Wherever it is, opening it is a lookup.
    if (this.#mounts) this.#place = 'disk';
    return this.#mounts && this.fs.sync;
  }

  /**
   * To be run when it is open. The calls that follow are in it.
   * @param at its path, for calls.
   */
  *enter({ dev, size }: BigIntStats, at: string): Effects<void> {
    const kind = this.#mounts?.get(dev);
    if (kind) this.#place = placeOf(kind);
    // A Btrfs subvolume, or mounted since.
    else if (this.#mounts) yield* this.#identify(at);
    this.#small = this.#place !== 'unknown' && size <= SMALL_DIRECTORY_BYTES ? at : undefined;
  }

  /** The same after `approachNow`, without asking; false if the mount table is not enough. Listings are asynchronous. */
  enterNow(dev: bigint): boolean {
    const kind = this.#mounts?.get(dev);
    if (kind) this.#place = placeOf(kind);
    return kind !== undefined && this.#place !== 'unknown';
  }

  /**
   * How many calls may be made through the thread pool at once; to be given to `runAsync`. It has four threads: one is left
   * to the rest of the process, and all but one if a call may never be answered.
   */
  readonly width = (): number => (this.#place === 'disk' ? 3 : 1);

  /** To be given to `runAsync`. */
  readonly allows = (step: Call): boolean => {
    if (step[0] === 'readdir') return step[1] === this.#small;
    switch (this.#place) {
      case 'unknown':
        return false;
      case 'disk':
        // Opening a directory is a lookup, too.
        return LOOKUPS.has(step[0]) || (step[0] === 'open' && (step[2] & O_DIRECTORY) !== 0);
      case 'memory':
        if (step[0] === 'read' || step[0] === 'write') return step[4] <= SMALL_BYTES;
        return true;
    }
  };

  *#identify(path: string): Effects<void> {
    this.#place = 'unknown';
    if (this.#platform !== 'linux') return;
    try {
      this.#place = placeOf(yield* kindAt(path, this.#platform));
    } catch {
      // Missing or unreadable: opening it gives the error.
    }
  }
}

function placeOf(kind: FileSystemKind | undefined): 'memory' | 'disk' | 'unknown' {
  return kind?.place === 'memory' || kind?.place === 'disk' ? kind.place : 'unknown';
}

/** Every file system that is mounted, by `st_dev`. */
type LocalMounts = ReadonlyMap<bigint, FileSystemKind>;

/** For how long the mount table is relied on, ms. Reading it takes as long as some ten lookups. */
const TABLE_AGE_MS = 100;

/** What the mount table said last, by the calls it was read with; undefined if not everything in it is local. */
const tables = new WeakMap<
  FileSystemCalls,
  { readonly readAt: number; readonly mounts: LocalMounts | undefined }
>();

/** What is mounted, if all of it is local. The kernel answers from memory, so the table is read synchronously. */
function localMounts({ sync }: FileSystem, platform: NodeJS.Platform): LocalMounts | undefined {
  if (!sync || platform !== 'linux') return undefined;
  const now = systemClock.monotonic();
  const known = tables.get(sync);
  if (known && now - known.readAt < TABLE_AGE_MS) return known.mounts;
  const mounts = readLocalMounts(sync);
  tables.set(sync, { readAt: now, mounts });
  return mounts;
}

/** Whether no path leads to a remote file system. Reads the mount table, at most once in `TABLE_AGE_MS`. */
export function isEverythingLocal(fs: FileSystem): boolean {
  return localMounts(fs, process.platform) !== undefined;
}

function readLocalMounts(calls: FileSystemCalls): LocalMounts | undefined {
  const kinds = new Map<bigint, FileSystemKind>();
  for (const { device, type } of runSync(readMounts(), calls)) {
    const kind = kindOfType(type);
    if (!kind || kind.place === 'remote') return undefined;
    kinds.set(device, kind);
  }
  return kinds.size === 0 ? undefined : kinds;
}
