/** A process: its user, its descriptors, its events, and its file system calls. */
import { Errno, Killed } from './errors.js';
import { LateQueue } from './late-queue.js';
import { EventQueue, NativeWatcher, notifyEnd, notifyEntry, notifyInode, notifyName } from './inotify.js';
import { existing, isAllowed, lookup, READ } from './lookup.js';
import type { Machine } from './machine.js';
import type { Place } from './mounts.js';
import { nodeFs, type SimulatedFs } from './node-fs.js';
import type { OpenFile } from './open-file.js';

const NOTIFY = { entry: notifyEntry, name: notifyName, inode: notifyInode, end: notifyEnd };
const SILENCE: typeof NOTIFY = { entry() {}, name() {}, inode() {}, end() {} };

const FIRST_DESCRIPTOR = 3;

export interface ProcessOptions {
  /** Default 0. */
  readonly uid?: number;
  /** Default: as `uid`. */
  readonly gid?: number;
  /** Default 0o022. */
  readonly umask?: number;
  /** Whether it sees `/proc`. Default true. */
  readonly hasProc?: boolean;
  /** Whether it is in a container, whose mount namespace has no private mounts. Default false. */
  readonly isContained?: boolean;
  /** Whether it is on another computer, so that its changes cause no events. Default false. */
  readonly isRemote?: boolean;
  /** How much one call writes, bytes; a signal or a file server may end it early. */
  readonly maxWriteBytes?: number;
  /** The path on the machine that one of this process means. Default: the same. */
  readonly pathOf?: (path: string) => string;
  /** Called before each system call is executed. May throw an `Errno`: then the call fails. */
  readonly before?: (call: string, path: string) => void;
}

export class Process {
  readonly machine: Machine;
  /** May be changed, as by `seteuid`. */
  uid: number;
  gid: number;
  readonly umask: number;
  /** May be changed before the first call. */
  hasProc: boolean;
  /** Whether `/proc` says on which mount a descriptor is; old kernels and gVisor do not. May be changed. */
  hasMountIds = true;
  readonly isContained: boolean;
  readonly maxWriteBytes: number;
  readonly pathOnMachine: (path: string) => string;
  before: (call: string, path: string) => void;
  #fs: SimulatedFs | undefined;
  readonly notify: typeof NOTIFY;
  isKilled = false;
  /** How many of its listings have missed an entry that was renamed over meanwhile. */
  missed = 0;
  /** The first synchronous call that did not return. */
  frozenIn: string | undefined;
  /** That of libuv. */
  #events: EventQueue | undefined;
  /** All inotify instances. */
  readonly #queues = new Set<EventQueue>();
  #files: (OpenFile | undefined)[] = [];

  constructor(machine: Machine, options: ProcessOptions) {
    const { uid = 0, gid = uid, umask = 0o022, hasProc = true, isRemote = false, before } = options;
    this.pathOnMachine = options.pathOf ?? ((path) => path);
    this.maxWriteBytes = options.maxWriteBytes ?? Infinity;
    this.machine = machine;
    this.uid = uid;
    this.gid = gid;
    this.umask = umask;
    this.hasProc = hasProc;
    this.isContained = options.isContained ?? false;
    this.notify = isRemote ? SILENCE : NOTIFY;
    this.before = before ?? (() => undefined);
  }

  get fs(): SimulatedFs {
    return (this.#fs ??= nodeFs(this));
  }

  get root(): Place {
    return this.machine.root;
  }

  /** Asked before a call is executed. @throws {Killed | Errno} */
  enter(call: string, path: string): void {
    this.#assertAlive();
    this.before(call, path);
    this.#assertAlive();
  }

  #assertAlive(): void {
    if (this.isKilled) throw new Killed();
  }

  /** Hands events to the listeners of its native watches, at most so many. Returns whether there were any. */
  deliver(limit = Infinity): boolean {
    return this.#events?.deliver(limit) ?? false;
  }

  /** It executes no further call: each fails with `Killed`, so that what the program has begun comes to an end. */
  kill(): void {
    this.isKilled = true;
    for (const call of this.machine.pending.filter(({ process }) => process === this)) {
      this.machine.pending.splice(this.machine.pending.indexOf(call), 1);
      call.drop();
    }
    for (const queue of this.#queues) queue.removeAll();
    for (const file of this.#files) file?.close(this);
    this.#files = [];
  }

  leftovers(): { readonly descriptors: number; readonly watches: number } {
    const descriptors = this.#files.filter((file) => file).length;
    const queues = [...this.#queues].filter(({ isLeaked }) => !isLeaked);
    return { descriptors, watches: queues.reduce((sum, queue) => sum + queue.watches, 0) };
  }

  /** How many inotify instances or watches it has, also leaked ones. */
  count(what: 'instances' | 'watches'): number {
    if (this.isKilled) return 0;
    if (what === 'instances') return this.#queues.size;
    return [...this.#queues].reduce((sum, queue) => sum + queue.watches, 0);
  }

  /** When the next events come that wait now, by the clock of the machine, ms. */
  get nextEventsAt(): number {
    return this.#events?.nextAt ?? Infinity;
  }

  /** How many of its native watches keep it alive. */
  get persistentWatches(): number {
    return this.#events?.persistent ?? 0;
  }

  /** As `fs.watch`. */
  watch(path: string, isPersistent: boolean): NativeWatcher {
    const { limits } = this.machine;
    this.#events ??= this.openInotify();
    const { inode } = existing(lookup(this, path, 'follow')).entry;
    if (!isAllowed(this, inode, READ)) throw new Errno('EACCES');
    const mayAdd = (): boolean => this.machine.count('watches') < limits.watches;
    const ownName = path.slice(path.lastIndexOf('/') + 1);
    return new NativeWatcher(this.#events.watch(inode, ownName, mayAdd), isPersistent);
  }

  /** As `inotify_init`. @throws {Errno} EMFILE */
  openInotify(): EventQueue {
    const { limits } = this.machine;
    if (this.machine.count('instances') >= limits.instances) throw new Errno('EMFILE');
    const isInotify = this.machine.platform === 'linux';
    const queue = isInotify ? new EventQueue(limits.queuedEvents) : new LateQueue(this.machine);
    this.#queues.add(queue);
    return queue;
  }

  closeInotify(queue: EventQueue): void {
    queue.removeAll();
    this.#queues.delete(queue);
  }

  /** @throws {Errno} EMFILE */
  assertDescriptor(): void {
    const count = this.#files.reduce((sum, file) => sum + (file ? 1 : 0), FIRST_DESCRIPTOR);
    if (count >= this.machine.limits.descriptors) throw new Errno('EMFILE');
  }

  /** The lowest free descriptor. */
  add(file: OpenFile): number {
    const free = this.#files.indexOf(undefined);
    const index = free < 0 ? this.#files.length : free;
    this.#files[index] = file;
    return FIRST_DESCRIPTOR + index;
  }

  remove(fd: number): void {
    this.#files[fd - FIRST_DESCRIPTOR] = undefined;
  }

  /** @throws {Errno} EBADF */
  file(fd: number): OpenFile {
    const file = this.#files[fd - FIRST_DESCRIPTOR];
    if (!file) throw new Errno('EBADF');
    return file;
  }

  pathOf(fd: number): string {
    return this.#files[fd - FIRST_DESCRIPTOR]?.path ?? `descriptor ${fd}`;
  }

  /** As `/proc/self/fdinfo`. @throws {Errno} ENOENT */
  descriptorInfo(fd: number): string {
    const { mount } = this.descriptorPlace(fd);
    return `pos:\t0\nflags:\t02100000\n${this.hasMountIds ? `mnt_id:\t${mount.id}\n` : ''}`;
  }

  /** @throws {Errno} ENOENT */
  descriptorPlace(fd: number): Place {
    const place = this.hasProc ? this.#files[fd - FIRST_DESCRIPTOR]?.place : undefined;
    if (!place) throw new Errno('ENOENT');
    return place;
  }
}
