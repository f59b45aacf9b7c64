/**
 * `@parcel/watcher` 2.6 in a process on Linux, as its C++ has it: one thread reads the events of all subscriptions, and another
 * one holds them back.
 *
 * - A subscription lists its root, then watches each directory of the list; meanwhile the thread waits. A list is shared by all
 *   subscriptions of a root as long as one of them lives, also by one that failed.
 * - A batch is sorted by path and does not tell what was created and deleted. The first one after half a second comes at once,
 *   the others when nothing has come for 50 ms.
 * - A directory that appears is watched, but not listed. When one is deleted or moved, every subscription forgets its path.
 * - Lost events are not reported. A root that is deleted or moved away is reported once, and then nothing.
 * - A signal ends the thread, and what it had is never freed. Without an inotify instance, `subscribe()` does not return.
 */
import type ParcelWatcher from '@parcel/watcher';

import { Errno, systemText } from './errors.js';
import type { Inode } from './inode.js';
import {
  ATTRIB,
  CREATE,
  DELETE,
  DELETE_SELF,
  MODIFY,
  MOVE_SELF,
  MOVED_FROM,
  MOVED_TO,
  type EventQueue,
  type QueuedEvent,
  type Watch,
} from './inotify.js';
import { existing, isAllowed, lookup, READ } from './lookup.js';
import { Batches, eventOf, later, type Timing, type Watcher } from './parcel-batches.js';
import type { Process } from './process.js';

/** How often it is started again after a death. */
const MAX_DEATHS = 3;

/** By path; whether it is a directory. */
type Listing = Map<string, boolean>;

/** A directory that is watched for a subscription. */
interface Member {
  readonly path: string;
  readonly watcher: Watcher;
  readonly listing: Listing;
}

/** The thread that reads events. */
interface Reader {
  readonly queue: EventQueue;
  readonly members: Map<Watch, Set<Member>>;
  readonly watchers: Set<Watcher>;
}

export class NativeParcel {
  readonly #process: Process;
  #reader: Reader | undefined;
  /** Those of threads that have died. */
  readonly #leaked: Reader[] = [];
  /** Whether somebody subscribes or unsubscribes, so that the thread waits. */
  #isLocked = false;
  readonly #batches: Batches;
  readonly #timing: Timing;
  /** The turn in which the thread was interrupted last. */
  #diedIn = -1;

  constructor(process: Process, timing: Timing) {
    this.#process = process;
    this.#timing = timing;
    this.#batches = new Batches(process, timing);
  }

  /** How many callbacks keep the process alive. */
  get callbacks(): number {
    return this.#batches.watchers.size;
  }

  /** What batches of the tree with this root have swallowed beside other events, and nothing has told since. */
  swallowedAt(root: string): ReadonlySet<string> {
    return new Set(this.#watchersOf(root).flatMap(({ swallowed }) => [...swallowed]));
  }

  /** What the tree with this root has events of that started no batch, because the thread could not look the path up. */
  heldAt(root: string): ReadonlySet<string> {
    return new Set(this.#watchersOf(root).flatMap(({ events }) => [...events.keys()]));
  }

  #watchersOf(root: string): Watcher[] {
    return [...this.#batches.watchers].filter((watcher) => watcher.root === root);
  }

  /** How many threads there are, apart from one that may never end, and three that may die. */
  get threads(): number {
    const isIdle = this.#reader?.queue.isLeaked === false;
    return Number(isIdle) + Math.max(0, this.#leaked.length - MAX_DEATHS);
  }

  /** Whether the thread has anything to read. */
  get isReady(): boolean {
    return !this.#isLocked && this.#reader?.queue.hasQueued === true;
  }

  /** The thread reads all events. */
  read(): void {
    const reader = this.#reader;
    if (!reader) return;
    const touched = new Set<Watcher>();
    for (const event of reader.queue.takeAll()) {
      const at = [...reader.members].find(([watch]) => watch.id === event.id);
      for (const member of [...(at?.[1] ?? [])])
        if (this.#handle(reader, event, member)) touched.add(member.watcher);
    }
    this.#batches.touched(touched);
  }

  /** A signal ends the thread that reads, if there is one. */
  interrupt(): void {
    const reader = this.#reader;
    if (!reader || this.#isLocked) return;
    this.#reader = undefined;
    this.#diedIn = this.#timing.turn();
    this.#leaked.push(reader);
    reader.queue.isLeaked = true;
    for (const watcher of reader.watchers) {
      this.#batches.call(watcher, new Error('Unable to poll: Interrupted system call'), []);
      this.#end(watcher);
    }
  }

  async subscribe(
    root: string,
    callback: ParcelWatcher.SubscribeCallback,
  ): Promise<ParcelWatcher.AsyncSubscription> {
    const watcher: Watcher = { root, callback, events: new Map(), swallowed: new Set() };
    this.#batches.watchers.add(watcher);
    const reader = this.#running(`subscribe ${root}`);
    this.#isLocked = true;
    try {
      await this.#watchAll(reader, watcher);
      reader.watchers.add(watcher);
    } catch (error) {
      this.#end(watcher);
      this.#endIfIdle(reader);
      throw error;
    } finally {
      this.#isLocked = false;
    }
    return { unsubscribe: () => this.#unsubscribe(watcher) };
  }

  async #unsubscribe(watcher: Watcher): Promise<void> {
    const reader = this.#running(`unsubscribe ${watcher.root}`);
    const isOpen = watcher.callback !== undefined;
    this.#end(watcher);
    this.#isLocked = true;
    try {
      await new Promise<void>((resolve) => later(this.#process, 'unsubscribe', watcher.root, resolve));
      if (!isOpen || !reader.watchers.delete(watcher)) return;
      for (const [watch, members] of reader.members)
        for (const member of [...members]) if (member.watcher === watcher) forget(reader, watch, member);
      this.#endIfIdle(reader);
    } finally {
      this.#isLocked = false;
    }
  }

  /** The thread, which is started if there is none. */
  #running(call: string): Reader {
    if (this.#reader) return this.#reader;
    let queue: EventQueue;
    try {
      queue = this.#process.openInotify();
    } catch {
      // It waits for a thread that has ended; what dies in the turn of the call cannot have been heard.
      if (this.#timing.turn() > this.#diedIn) this.#process.frozenIn ??= call;
      throw new Error('The process is frozen');
    }
    return (this.#reader = { queue, members: new Map(), watchers: new Set() });
  }

  #endIfIdle(reader: Reader): void {
    if (reader.watchers.size > 0 || this.#reader !== reader) return;
    this.#reader = undefined;
    this.#process.closeInotify(reader.queue);
  }

  #end(watcher: Watcher): void {
    watcher.callback = undefined;
    this.#batches.watchers.delete(watcher);
  }

  /** A system call that a thread of the pool makes. */
  async #step<T>(call: string, path: string, run: () => T): Promise<T> {
    await new Promise<void>((resolve) => later(this.#process, call, path, resolve));
    this.#process.enter(call, path);
    return run();
  }

  async #watchAll(reader: Reader, watcher: Watcher): Promise<void> {
    const { root } = watcher;
    const listing = this.#listingOf(root) ?? (await this.#list(root));
    // In any order, so perhaps those below first.
    for (const [path, isDirectory] of [...listing].reverse()) {
      if (!isDirectory) continue;
      await this.#step('inotify_add_watch', path, () => this.#add(reader, { path, watcher, listing })).catch(
        (error: unknown) => {
          throw new Error(`inotify_add_watch on '${path}' failed: ${systemText(error)}`);
        },
      );
    }
  }

  #listingOf(root: string): Listing | undefined {
    const readers = [...this.#leaked, ...(this.#reader ? [this.#reader] : [])];
    const members = readers.flatMap((reader) => [...reader.members.values()].flatMap((set) => [...set]));
    return members.find(({ watcher }) => watcher.root === root)?.listing;
  }

  async #list(root: string): Promise<Listing> {
    const listing: Listing = new Map([[root, true]]);
    // What is added meanwhile is visited, too.
    for (const [path, isDirectory] of listing) {
      if (!isDirectory) continue;
      const entries = await this.#step('opendir', path, () => this.#entries(path, path === root)).catch(
        (error: unknown) => {
          throw new Error(systemText(error));
        },
      );
      if (!entries) listing.delete(path);
      for (const [name, is] of entries ?? []) listing.set(`${path}/${name}`, is);
    }
    return listing;
  }

  /** What is in a directory; undefined if that may not be read. */
  #entries(path: string, isRoot: boolean): Map<string, boolean> | undefined {
    try {
      const inode = this.#directory(path, isRoot ? 'follow' : 'keep');
      return new Map([...inode.entries].map(([name, entry]) => [name, entry.inode.kind === 'directory']));
    } catch (error) {
      if (!(error instanceof Errno)) throw error;
      if (isRoot && error.code !== 'ENOTDIR') throw new Errno('EBADF');
      if (error.code === 'EACCES') return undefined;
      throw error;
    }
  }

  /** @throws {Errno} unless there is a directory that may be read. */
  #directory(path: string, end: 'follow' | 'keep'): Inode {
    const { inode } = existing(lookup(this.#process, path, end)).entry;
    if (inode.kind !== 'directory') throw new Errno('ENOTDIR');
    if (!isAllowed(this.#process, inode, READ)) throw new Errno('EACCES');
    return inode;
  }

  #add(reader: Reader, member: Member): void {
    const inode = this.#directory(member.path, 'keep');
    const { machine } = this.#process;
    const watch = reader.queue.watch(inode, '', () => machine.count('watches') < machine.limits.watches);
    const members = reader.members.get(watch) ?? new Set();
    reader.members.set(watch, members.add(member));
  }

  /** Returns whether it is an event for the subscription. */
  #handle(reader: Reader, { mask, name }: QueuedEvent, member: Member): boolean {
    const { watcher, listing } = member;
    const path = name === '' ? member.path : `${member.path}/${name}`;
    if (mask & (CREATE | MOVED_TO)) {
      const event = eventOf(watcher, path);
      if (event.isDeleted) event.isDeleted = false;
      else event.isCreated = true;
      return this.#appeared(reader, { path, watcher, listing });
    }
    if (mask & (MODIFY | ATTRIB)) {
      eventOf(watcher, path);
      return this.#process.fs.inodeAt(path) !== undefined;
    }
    if (mask & (DELETE | DELETE_SELF | MOVED_FROM | MOVE_SELF)) {
      const isSelf = (mask & (DELETE_SELF | MOVE_SELF)) !== 0;
      if (isSelf && path !== watcher.root) return false;
      for (const members of reader.members.values())
        for (const each of members) if (each.path === path) members.delete(each);
      eventOf(watcher, path).isDeleted = true;
      for (const each of listing.keys()) if (`${each}/`.startsWith(`${path}/`)) listing.delete(each);
    }
    return true;
  }

  #appeared(reader: Reader, member: Member): boolean {
    const { path, listing } = member;
    try {
      const { inode } = existing(lookup(this.#process, path, 'entry')).entry;
      if (!listing.has(path)) listing.set(path, inode.kind === 'directory');
    } catch {
      return false;
    }
    if (listing.get(path) !== true) return true;
    try {
      this.#add(reader, member);
      return true;
    } catch {
      listing.delete(path);
      return false;
    }
  }
}

/** @throws {Error} if the kernel has ended the watch. */
function forget({ queue, members }: Reader, watch: Watch, member: Member): void {
  const set = members.get(watch);
  if (set?.size === 1) {
    if (!queue.removeLive(watch)) {
      queue.isLeaked = true;
      throw new Error('Unable to remove watcher: Invalid argument');
    }
    members.delete(watch);
  }
  set?.delete(member);
}
