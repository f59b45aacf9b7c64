/**
 * A computer in memory: file systems, mounts, processes, and the queues of events that the kernel keeps for them.
 * `test/kernel/simulated-machine.test.ts` and `simulated-roots.test.ts` compare it with the kernel of Linux.
 *
 * Not modeled, because nothing here depends on it:
 * - ACLs, capabilities, extended attributes, supplementary groups, immutable files, quotas, access times, leases, locks
 * - devices and sockets; reading from and writing to pipes
 * - `fs.protected_symlinks`, `fs.protected_regular` and `fs.protected_fifos` (0 here)
 * - working directories, relative paths, `/proc` beyond the mount table, descriptors, and root directories
 * - inode numbers other than that freed ones are reused; sizes of directories; blocks
 * - timestamps of Linux 6.13 and later, which are finer where somebody looks (ticks of 0 ms are as fine as any)
 * - mounts in several namespaces, propagation of mounts, layers of overlayfs, `renameat2` with flags
 * - order of changes on the disk beyond that of one journal; a power cut that leaves a file system damaged
 * - callbacks between two events that libuv has read at once
 */
import { Errno } from './errors.js';
import { UNMOUNT, notifyEnd } from './inotify.js';
import type { Inode } from './inode.js';
import { existing, lookup } from './lookup.js';
import { Mount, mountInfo, type Place } from './mounts.js';
import type { PendingCall } from './node-fs.js';
import { Process, type ProcessOptions } from './process.js';
import { Storage } from './storage.js';

export { Errno, Killed, Stuck } from './errors.js';
export type { PendingCall } from './node-fs.js';
export type { Process } from './process.js';

export type Platform = 'linux' | 'darwin' | 'win32';

/** Which spellings are one name to a lookup. */
const FOLDS: Readonly<Record<Platform, ((name: string) => string) | undefined>> = {
  linux: undefined,
  darwin: (name) => name.normalize('NFC').toLowerCase(),
  win32: (name) => name.toLowerCase(),
};

interface MachineOptions {
  readonly random: () => number;
  /** How often the clock of timestamps advances, ms. 0: no two timestamps are the same. */
  readonly tickMs: 0 | 4 | 10;
  /** Wall clock, epoch ms. */
  readonly now: () => number;
  /** Ms since any instant. Default: as `now`. */
  readonly elapsed?: () => number;
  /** The type of the root file system. Default `ext4`. */
  readonly type?: string;
  /** Default `linux`. */
  readonly platform?: Platform;
}

interface MountOptions {
  /** As in the mount table. */
  readonly type: string;
  /** What is mounted: a new file system by default, or this path (as `mount --bind`). */
  readonly bind?: string;
  readonly isReadOnly?: boolean;
  /** Whether programs in containers do not see it. */
  readonly isPrivate?: boolean;
  /** Of a new file system, bytes. */
  readonly capacity?: number;
  /** The clock of a new file system, epoch ms. Default that of the machine. */
  readonly now?: () => number;
}

interface Stamps {
  readonly now: () => number;
  last: bigint;
  lastMs: number;
  /** How far it was ahead of the time that has passed, ms, and how often that has changed. */
  aheadMs: number;
  sets: bigint;
}

const stampsOf = (now: () => number): Stamps => ({ now, last: 0n, lastMs: -1, aheadMs: 0, sets: 0n });

export class Machine {
  readonly limits = { descriptors: 1_024, instances: 128, watches: 1_048_576, queuedEvents: 16_384 };
  readonly platform: Platform;
  /** How long events are kept before a program hears of them, ms; only of macOS and Windows. */
  latencyMs = 0;
  /** Calls with a callback that were not answered yet. */
  readonly pending: PendingCall[] = [];
  root: Place;
  readonly #options: MachineOptions;
  readonly #processes: Process[] = [];
  readonly #superuser: Process;
  #mounts: Mount[];
  #mountIds = 20;
  #devices = 0x800n;
  readonly #stamps: Stamps;
  #mountInfo: string | undefined;

  constructor(options: MachineOptions) {
    this.#options = options;
    this.platform = options.platform ?? 'linux';
    this.#stamps = stampsOf(options.now);
    const mount = new Mount(
      this.#mountIds++,
      this.#newStorage(options.type ?? 'ext4').root,
      undefined,
      false,
    );
    mount.storage.mounts += 1;
    this.#mounts = [mount];
    this.root = { mount, entry: mount.root };
    this.#superuser = this.process();
  }

  process(options: ProcessOptions = {}): Process {
    const process = new Process(this, options);
    this.#processes.push(process);
    return process;
  }

  /** Mounts a new file system, or what is at another path. */
  mount(
    point: string,
    { type, bind, isReadOnly = false, isPrivate = false, capacity, now }: MountOptions,
  ): Mount {
    const on = this.#at(point);
    const root = bind === undefined ? this.#newStorage(type, capacity, now).root : this.#at(bind).entry;
    const mount = new Mount(this.#mountIds++, root, on, isReadOnly, isPrivate);
    mount.storage.mounts += 1;
    (on.entry.mounts ??= []).push(mount);
    this.#mounts.push(mount);
    this.#mountInfo = undefined;
    return mount;
  }

  /** @param isLazy also while it is in use: it can no longer be reached by its path. */
  unmount(mount: Mount, { isLazy = false } = {}): void {
    const above = this.#mounts.filter(({ on }) => on?.mount === mount);
    if (!isLazy && (above.length > 0 || mount.opens > 0)) throw new Errno('EBUSY');
    for (const each of above) this.unmount(each, { isLazy });
    const { on } = mount;
    if (on) on.entry.mounts = on.entry.mounts?.filter((each) => each !== mount);
    this.#mounts = this.#mounts.filter((each) => each !== mount);
    this.#mountInfo = undefined;
    mount.storage.mounts -= 1;
    this.endIfUnmounted(mount.storage);
  }

  /**
   * Makes this path a link to the root directory of a process, as in `/proc`: of a container with a mount table of its own, or
   * of this mount namespace. The container that it led to is removed. Returns the mount of the container.
   */
  linkRoot(path: string, type?: string): Mount | undefined {
    const { entry } = existing(lookup(this.#superuser, path, 'keep'));
    const before = entry.inode.leadsTo?.mount;
    entry.inode.isOfProc = true;
    const root = type === undefined ? undefined : this.#newStorage(type).root;
    const mount = root && new Mount(this.#mountIds++, root, undefined, false);
    if (mount) mount.storage.mounts += 1;
    entry.inode.leadsTo = mount ? { mount, entry: mount.root } : this.root;
    if (!before || before === this.root.mount) return mount;
    before.storage.mounts -= 1;
    this.endIfUnmounted(before.storage);
    return mount;
  }

  /** Makes this link one of `/proc` that leads to a path. */
  putInProc(path: string): void {
    existing(lookup(this.#superuser, path, 'keep')).entry.inode.isOfProc = true;
  }

  /** A file system that is neither mounted nor in use ends. */
  endIfUnmounted({ mounts, opens, root }: Storage): void {
    if (mounts > 0 || opens > 0) return;
    const inodes = [root.inode];
    for (const inode of inodes) {
      inodes.push(...[...inode.entries.values()].map((entry) => entry.inode));
      notifyEnd(inode, UNMOUNT);
    }
  }

  /** Equal for two spellings of one name. */
  fold(name: string): string {
    return FOLDS[this.platform]?.(name) ?? name;
  }

  /** Ms since any instant. */
  get elapsed(): number {
    const { elapsed, now } = this.#options;
    return elapsed?.() ?? now();
  }

  get random(): number {
    return this.#options.random();
  }

  /** Whether Windows refuses to move this directory, because something below it is watched. */
  isHeldOpen({ entries }: Inode): boolean {
    if (this.platform !== 'win32') return false;
    return [...entries.values()].some(({ inode }) => inode.watches.length > 0 || this.isHeldOpen(inode));
  }

  get mountInfo(): string {
    return (this.#mountInfo ??= mountInfo(this.#mounts));
  }

  /** How many inotify instances or watches there are. */
  count(what: 'instances' | 'watches'): number {
    return this.#processes.reduce((sum, process) => sum + process.count(what), 0);
  }

  /** All names so far survive a power cut. */
  syncNames(): void {
    this.root.mount.storage.syncNames();
  }

  /**
   * All processes end, and only the root file system is left, with what of it was on the disk: everything that was
   * synced, and of the rest what `random` says.
   */
  powerCut(): void {
    for (const process of this.#processes) process.kill();
    for (const mount of this.#mounts) if (mount.on) mount.on.entry.mounts = undefined;
    const { mount } = this.root;
    this.#mounts = [mount];
    this.#mountInfo = undefined;
    mount.storage.powerCut(this.#options.random);
    mount.root = mount.storage.root;
    this.root = { mount, entry: mount.root };
    this.#processes.length = 0;
  }

  #at(path: string): Place {
    return existing(lookup(this.#superuser, path, 'follow'));
  }

  #newStorage(type: string, capacity?: number, now?: () => number): Storage {
    const stamps = now ? stampsOf(now) : this.#stamps;
    return new Storage({
      type,
      device: this.#devices++,
      stamp: () => this.#stamp(stamps),
      capacity,
      fold: FOLDS[this.platform],
    });
  }

  #stamp(stamps: Stamps): bigint {
    const { tickMs } = this.#options;
    const ms = stamps.now();
    if (ms === stamps.lastMs) return tickMs > 0 ? stamps.last : (stamps.last += 1n);
    stamps.lastMs = ms;
    const aheadMs = ms - this.elapsed;
    if (Math.abs(aheadMs - stamps.aheadMs) > 1) {
      stamps.aheadMs = aheadMs;
      stamps.sets += 1n;
    }
    // Ticks are no round times: a clock that was set back does not show one of them again.
    if (tickMs > 0) stamps.last = BigInt(Math.floor(ms / tickMs) * tickMs) * 1_000_000n - stamps.sets;
    else stamps.last = BigInt(Math.floor(ms * 1_000)) * 1_000n;
    return stamps.last;
  }
}
