/** The queue of events that the kernel keeps for a process, and what libuv and `fs.watch` make of it. */
import { EventEmitter } from 'node:events';

import { Errno } from './errors.js';
import type { Entry, Inode } from './inode.js';
import { lossy } from './lookups.js';

export const ATTRIB = 0x4;
export const MODIFY = 0x2;
export const MOVED_FROM = 0x40;
export const MOVED_TO = 0x80;
export const CREATE = 0x100;
export const DELETE = 0x200;
export const DELETE_SELF = 0x400;
export const MOVE_SELF = 0x800;
export const UNMOUNT = 0x2000;
const OVERFLOW = 0x4000;
const IGNORED = 0x8000;
const IS_DIRECTORY = 0x4000_0000;

/** How many bytes of events libuv reads at once. */
const READ_BYTES = 4_096;
const HEADER_BYTES = 16;

/** A watch of the kernel, on an inode. */
export class Watch {
  readonly handles = new Set<NativeWatcher>();

  readonly queue: EventQueue;
  readonly id: number;
  readonly inode: Inode;
  /** The last name of the path by which it was opened first: the name of events about the inode itself. */
  readonly ownName: string;

  constructor(queue: EventQueue, id: number, inode: Inode, ownName: string) {
    this.queue = queue;
    this.id = id;
    this.inode = inode;
    this.ownName = ownName;
  }
}

export interface QueuedEvent {
  readonly id: number;
  readonly mask: number;
  readonly name: string;
}

/** An inotify instance. */
export class EventQueue {
  /** By watch descriptor; also those that the kernel has ended. */
  readonly #watches = new Map<number, Watch>();
  #nextId = 1;
  /** In the kernel. */
  #queue: QueuedEvent[] = [];
  /** Read by libuv, and not handled yet. */
  #read: QueuedEvent[] = [];

  readonly maxQueued: number;
  /** Whether nobody can close it any more, or end all its watches. */
  isLeaked = false;

  /** @param maxQueued after so many events, the next ones are lost. */
  constructor(maxQueued: number) {
    this.maxQueued = maxQueued;
  }

  /** When the next events are handed on that wait now, by the clock of the machine, ms; what waits for nothing has no time. */
  get nextAt(): number {
    return Infinity;
  }

  get watches(): number {
    return this.#watches.size;
  }

  /** How many handles keep the process alive. */
  get persistent(): number {
    const handles = [...this.#watches.values()].flatMap((watch) => [...watch.handles]);
    return handles.filter(({ isPersistent }) => isPersistent).length;
  }

  protected watchOf(id: number): Watch | undefined {
    return this.#watches.get(id);
  }

  /** The watch of this inode. There is only one for each inode. @param mayAdd whether the limit of watches allows another. */
  watch(inode: Inode, ownName: string, mayAdd: () => boolean): Watch {
    const known = inode.watches.find(({ queue }) => queue === this);
    if (known) return known;
    if (!mayAdd()) throw new Errno('ENOSPC');
    const watch = new Watch(this, this.#nextId++, inode, ownName);
    this.#watches.set(watch.id, watch);
    inode.watches.push(watch);
    return watch;
  }

  push(id: number, mask: number, name: string): void {
    const last = this.#queue.at(-1);
    if (last?.id === id && last.mask === mask && last.name === name && !(mask & IGNORED)) return;
    if (this.#queue.length < this.maxQueued) this.#queue.push({ id, mask, name });
    else if (last && !(last.mask & OVERFLOW)) this.#queue.push({ id: -1, mask: OVERFLOW, name: '' });
  }

  /** The kernel ends a watch. libuv does not notice. */
  end(watch: Watch): void {
    if (!watch.inode.watches.includes(watch)) return;
    watch.inode.watches = watch.inode.watches.filter((each) => each !== watch);
    this.push(watch.id, IGNORED, '');
  }

  /** The last handle of a watch was closed. */
  remove(watch: Watch): void {
    this.end(watch);
    this.#watches.delete(watch.id);
  }

  /** As `inotify_rm_watch`. Returns false if the kernel has ended the watch. */
  removeLive(watch: Watch): boolean {
    const isLive = watch.inode.watches.includes(watch);
    if (isLive) this.remove(watch);
    return isLive;
  }

  get hasQueued(): boolean {
    return this.#queue.length > 0;
  }

  /** For a reader other than libuv. */
  takeAll(): readonly QueuedEvent[] {
    return this.#queue.splice(0);
  }

  removeAll(): void {
    for (const watch of this.#watches.values()) this.remove(watch);
    this.#queue = this.#read = [];
  }

  /** Hands events to the listeners, also those that come meanwhile. Returns whether there were any. */
  deliver(limit: number): boolean {
    let count = 0;
    for (; count < limit; count += 1) {
      if (this.#read.length === 0) this.#readSome();
      const event = this.#read.shift();
      if (!event) break;
      this.handle(event);
    }
    return count > 0;
  }

  #readSome(): void {
    let bytes = 0;
    const end = this.#queue.findIndex(({ name }) => {
      bytes += HEADER_BYTES + (name === '' ? 0 : Math.ceil((Buffer.byteLength(name) + 1) / 16) * 16);
      return bytes > READ_BYTES;
    });
    this.#read = this.#queue.splice(0, end < 0 ? this.#queue.length : end);
  }

  protected handle({ id, mask, name }: QueuedEvent): void {
    const watch = this.watchOf(id);
    if (!watch) return;
    // Any event about a directory is a "rename", because of its flag.
    const isChange = (mask & ~(ATTRIB | MODIFY)) === 0;
    for (const handle of [...watch.handles]) {
      handle.receive(isChange ? 'change' : 'rename', lossy(name === '' ? watch.ownName : name));
    }
  }
}

/** As the `FSWatcher` of Node.js. */
export class NativeWatcher extends EventEmitter {
  #watch: Watch | undefined;
  /** Whether it keeps the process alive. */
  isPersistent: boolean;

  constructor(watch: Watch, isPersistent: boolean) {
    super();
    this.#watch = watch;
    this.isPersistent = isPersistent;
    watch.handles.add(this);
  }

  receive(type: 'change' | 'rename', name: string | null): void {
    if (this.#watch) this.emit('change', type, name);
  }

  fail(error: Error): void {
    if (this.#watch) this.emit('error', error);
  }

  close(): void {
    const watch = this.#watch;
    this.#watch = undefined;
    watch?.handles.delete(this);
    if (watch?.handles.size === 0) watch.queue.remove(watch);
  }

  ref(): this {
    this.isPersistent = true;
    return this;
  }

  unref(): this {
    this.isPersistent = false;
    return this;
  }
}

const directoryFlag = ({ kind }: Inode): number => (kind === 'directory' ? IS_DIRECTORY : 0);

/** Something happened to an inode, whatever its names are. */
export function notifyInode(inode: Inode, mask: number): void {
  const { watches } = inode;
  for (const watch of watches) watch.queue.push(watch.id, mask | directoryFlag(inode), '');
}

/** Something happened in a directory to a name. */
export function notifyName(directory: Inode, mask: number, name: string, inode: Inode): void {
  for (const watch of directory.watches) watch.queue.push(watch.id, mask | directoryFlag(inode), name);
}

/** Something happened to what was opened or looked up by this name. */
export function notifyEntry({ parent, name, inode }: Entry, mask: number): void {
  if (parent) notifyName(parent.inode, mask, name, inode);
  notifyInode(inode, mask);
}

/** An inode ceases to exist, or its file system does. */
export function notifyEnd(inode: Inode, mask: typeof DELETE_SELF | typeof UNMOUNT): void {
  const { watches } = inode;
  for (const watch of watches) watch.queue.push(watch.id, mask, '');
  for (const watch of watches) watch.queue.end(watch);
}
