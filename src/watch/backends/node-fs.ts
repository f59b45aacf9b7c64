/**
 * The backend `fs`: one non-recursive `node:fs.watch` for each directory, shared by all watchers of the process.
 *
 * A native watch is bound to an inode, not to a path.
 *
 * | what happens                                       | the native watch                                     |
 * |----------------------------------------------------|------------------------------------------------------|
 * | an event about an entry                            | stays; a hint about the entry                        |
 * | something about the directory itself: a chmod or   | is opened again, which on Linux keeps the watch of   |
 * | chown, or it was moved, deleted or unmounted       | the kernel if it is alive; a hint about it           |
 * | the same, and it cannot be opened                  | closed; opened by the check that finds a directory   |
 * | another directory is at its path                   | replaced, by the check that found the other identity |
 * | an error                                           | closed; the backend is lost                          |
 */
import { watch, type FSWatcher } from 'node:fs';
import { basename } from 'node:path';

import { within } from '../../fs/absolute-path.js';
import { backendFailure } from './backend-failure.js';
import { errnoOf, isDenied } from '../../core/errno.js';
import { pathForCall, pathFromBytes } from '../../core/path-bytes.js';
import type {
  HintSink,
  WatchBackend,
  WatchedDirectory,
  WatchSubscription,
} from '../../core/watch-backend.js';

const NAME = 'fs';

/** There, an event of type `change` is a write (IN_MODIFY) or new attributes (IN_ATTRIB) of an entry. */
const IS_INOTIFY = process.platform === 'linux';

/** A subscriber to hints about directories. */
interface Subscriber {
  readonly sink: HintSink;
  readonly persistent: boolean;
  /** A native watch has ended; the next `setDirectories` opens another one. */
  ended(): void;
}

/** How often a native watch was opened on a directory: the clock by which subscriptions know what they have missed. */
let openings = 0;

/** The entries that hints are wanted about; undefined: all. */
type Entries = ReadonlySet<string> | undefined;

/**
 * The entries that the subscribers of one directory want, together: a thousand watchers below a busy directory such as
 * `/tmp` want one entry of it, and an event about any other costs as much as with one watcher.
 */
class WantedEntries {
  /** How many want all entries. */
  #all = 0;
  /** How many want each entry. */
  readonly #each = new Map<string, number>();

  has(entry: string): boolean {
    return this.#all > 0 || this.#each.has(entry);
  }

  count(entries: Entries, by: 1 | -1): void {
    if (!entries) {
      this.#all += by;
      return;
    }
    for (const entry of entries) {
      const count = (this.#each.get(entry) ?? 0) + by;
      if (count > 0) this.#each.set(entry, count);
      else this.#each.delete(entry);
    }
  }
}

function includesAll(some: Entries, others: Entries): boolean {
  if (!some || some === others) return true;
  if (!others) return false;
  for (const entry of others) if (!some.has(entry)) return false;
  return true;
}

/** One native watch. */
class DirectoryWatch {
  readonly #path: string;
  readonly #subscribers = new Map<Subscriber, Entries>();
  readonly #wanted = new WantedEntries();
  /** The number of subscribers that keep the process alive. */
  #persistent = 0;
  #native: FSWatcher | undefined;
  #identity: string | undefined;
  /** The time, in openings, since which nothing was missed. */
  #since = 0;

  constructor(path: string) {
    this.#path = path;
  }

  get idle(): boolean {
    return this.#subscribers.size === 0;
  }

  /** Ensures that the directory with this identity is watched. Returns since when, in openings. */
  arm(identity: string, persistent: boolean): number {
    if (this.#native && this.#identity === identity) return this.#since;
    const isReplaced = this.#native !== undefined;
    this.#open(persistent);
    this.#identity = identity;
    openings += 1;
    this.#since = openings;
    // Other subscribers rely on the old one.
    if (isReplaced) this.#hintAll(true);
    return this.#since;
  }

  /**
   * Opens a native watch, and then closes the previous one. While both are on the same directory they are one watch
   * of the kernel, so that nothing is missed.
   */
  #open(persistent: boolean): void {
    // The self event of a directory bears its own base name, which a child may have too. With "/." at the end
    // that base name is ".", which no child has.
    const native = watch(pathForCall(`${this.#path}/.`), { persistent, encoding: 'buffer' });
    native.on('change', (type, name) => this.#event(native, type, name));
    native.on('error', (error) => {
      if (native === this.#native) this.#down(error);
    });
    this.#native?.close();
    this.#native = native;
    if (this.#persistent > 0) native.ref();
  }

  /** Returns whether there are entries that it was not subscribed to before. */
  subscribe(subscriber: Subscriber, entries: Entries): boolean {
    const before = this.#subscribers.get(subscriber);
    const isNew = !this.#subscribers.has(subscriber);
    if (isNew) this.#count(subscriber, 1);
    else this.#wanted.count(before, -1);
    this.#wanted.count(entries, 1);
    this.#subscribers.set(subscriber, entries);
    return isNew || !includesAll(before, entries);
  }

  unsubscribe(subscriber: Subscriber): void {
    const entries = this.#subscribers.get(subscriber);
    if (this.#subscribers.delete(subscriber)) {
      this.#count(subscriber, -1);
      this.#wanted.count(entries, -1);
    }
    if (this.idle) this.close();
  }

  close(): void {
    this.#native?.close();
    this.#native = undefined;
  }

  #event(native: FSWatcher, type: string, name: string | Buffer | null): void {
    if (native !== this.#native) return;
    // Deno gives text in any case.
    const entry = typeof name === 'string' || name === null ? name : pathFromBytes(name);
    if (entry === null || entry === '.' || (!IS_INOTIFY && entry === basename(this.#path))) {
      this.#hintAll(false);
      // A listener may have closed the last watcher.
      if (!this.idle && !this.#survives()) this.#endAll();
      return;
    }
    // A single subscriber is asked below: before a swap is reported, each function that is called takes microseconds.
    if (this.#subscribers.size > 1 && !this.#wanted.has(entry)) return;
    const hint = { path: within(this.#path, entry), written: IS_INOTIFY && type === 'change' };
    // Sooner than iterating over entries, when it happens as rarely as this.
    this.#subscribers.forEach((entries, { sink }) => {
      if (!entries || entries.has(entry)) sink.hint(hint);
    });
  }

  /**
   * Something happened to the directory itself. That may be the end of the watch, or a chmod or chown as kubelet makes
   * them before each swap: the event does not say which. So the watch is opened again, before the check that the hint
   * leads to; if another directory is there, that check finds its identity.
   */
  #survives(): boolean {
    try {
      if (!IS_INOTIFY) throw new Error('The watch may be dead');
      this.#open(this.#persistent > 0);
      return true;
    } catch {
      this.close();
      return false;
    }
  }

  #hintAll(hasEnded: boolean): void {
    if (hasEnded) this.#endAll();
    for (const { sink } of [...this.#subscribers.keys()]) sink.hint({ path: this.#path });
  }

  #endAll(): void {
    for (const subscriber of this.#subscribers.keys()) subscriber.ended();
  }

  #down(error: unknown): void {
    this.close();
    const failure = backendFailure(NAME, this.#path, error);
    for (const { sink } of [...this.#subscribers.keys()]) sink.down(failure);
  }

  #count({ persistent }: Subscriber, by: 1 | -1): void {
    if (!persistent) return;
    this.#persistent += by;
    if (this.#persistent > 0) this.#native?.ref();
    else this.#native?.unref();
  }
}

/**
 * The table shared by the process: a thousand watchers of one volume cost its directories once. An entry lives as
 * long as it has subscribers.
 */
const table = new Map<string, DirectoryWatch>();

const NO_DIRECTORIES: readonly WatchedDirectory[] = [];
const NOTHING_OPENED: readonly string[] = [];
const NOTHING_WANTED: ReadonlySet<string> = new Set();

class Subscription implements WatchSubscription, Subscriber {
  readonly sink: HintSink;
  readonly persistent: boolean;
  /** The directories of the last call. */
  #directories = NO_DIRECTORIES;
  /** The time of the last call, in openings. */
  #at = 0;
  /** Whether all of them are watched. */
  #isIntact = false;

  constructor(sink: HintSink, persistent: boolean) {
    this.sink = sink;
    this.persistent = persistent;
  }

  ended(): void {
    this.#isIntact = false;
  }

  setDirectories(directories: readonly WatchedDirectory[]): readonly string[] {
    const before = this.#directories;
    // A tree has many directories, and most checks find the same ones.
    if (this.#isIntact && directories === before) return NOTHING_OPENED;
    this.#isIntact = true;
    const opened: string[] = [];
    try {
      for (const directory of directories) if (this.#watch(directory)) opened.push(directory.path);
    } catch (error) {
      // Some of them are watched.
      this.#directories = [...before, ...directories];
      this.#isIntact = false;
      throw error;
    }
    this.#directories = directories;
    this.#at = openings;
    if (directories !== before) this.#unwatch(before, new Set(directories.map(({ path }) => path)));
    return opened;
  }

  close(): void {
    this.#unwatch(this.#directories, NOTHING_WANTED);
    this.#directories = NO_DIRECTORIES;
  }

  /** Returns whether something may have been missed since the last call. */
  #watch({ path, identity, entries }: WatchedDirectory): boolean {
    const shared = table.get(path) ?? new DirectoryWatch(path);
    let since: number;
    try {
      since = shared.arm(identity, this.persistent);
    } catch (error) {
      const code = errnoOf(error);
      if (code === 'ENOENT' || code === 'ENOTDIR') throw error;
      // An ancestor that may be searched but not read cannot be watched; the resync remains.
      if (entries && isDenied(error)) return false;
      throw backendFailure(NAME, path, error);
    }
    table.set(path, shared);
    return shared.subscribe(this, entries) || since > this.#at;
  }

  #unwatch(directories: readonly WatchedDirectory[], wanted: ReadonlySet<string>): void {
    for (const { path } of directories) {
      if (wanted.has(path)) continue;
      const shared = table.get(path);
      shared?.unsubscribe(this);
      if (shared?.idle) table.delete(path);
    }
  }
}

/** Hints from `node:fs.watch`: within a millisecond on a local file system. */
export const nodeFsBackend: WatchBackend = {
  name: NAME,
  reportsWrites: IS_INOTIFY,
  needsKernelEvents: true,
  subscribe: (sink, { persistent }) => new Subscription(sink, persistent),
};
