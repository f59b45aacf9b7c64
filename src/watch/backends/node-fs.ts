/**
 * The backend `fs`: one non-recursive `node:fs.watch` for each directory, shared by all watchers of the process.
 *
 * A native watch is bound to an inode, not to a path. It is opened anew when another directory stands at its
 * path (the identity differs) and when it may be dead (an event about the directory itself).
 */
import { watch, type FSWatcher } from 'node:fs';
import { basename } from 'node:path';

import { within } from '../../fs/absolute-path.js';
import { backendFailure } from './backend-failure.js';
import { errnoOf, isDenied } from '../../core/errors.js';
import type {
  HintSink,
  WatchBackend,
  WatchedDirectory,
  WatchSubscription,
} from '../../core/watch-backend.js';

const NAME = 'fs';

/** Who wants to hear of a directory, and of which entries in it. */
interface Subscriber {
  readonly sink: HintSink;
  readonly persistent: boolean;
  readonly entries: ReadonlySet<string> | undefined;
  /** The native watch has ended, and is opened anew by an setDirectories. */
  readonly ended: () => void;
}

/** One native watch. */
class DirectoryWatch {
  readonly #path: string;
  readonly #subscribers = new Map<object, Subscriber>();
  /** How many of them keep the process alive. */
  #persistent = 0;
  #native: FSWatcher | undefined;
  #identity: string | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  get idle(): boolean {
    return this.#subscribers.size === 0;
  }

  /** Makes sure that the directory of this identity is watched. Returns the native watch that does so. */
  arm(identity: string, persistent: boolean): FSWatcher {
    if (this.#native && this.#identity === identity) return this.#native;
    // The self event of a directory bears its own base name, which a child may have too. With "/." at the end
    // that base name is ".", which no child has.
    const native = watch(`${this.#path}/.`, { persistent });
    native.on('change', (type, name) => this.#event(native, type, name));
    native.on('error', (error) => {
      if (native === this.#native) this.#down(error);
    });
    const replaced = this.#native;
    this.#native = native;
    this.#identity = identity;
    if (this.#persistent > 0) native.ref();
    replaced?.close();
    // The others looked at what the old watch covered.
    if (replaced) this.#hintAll();
    return native;
  }

  subscribe(key: object, subscriber: Subscriber): void {
    if (!this.#subscribers.has(key)) this.#count(subscriber, 1);
    this.#subscribers.set(key, subscriber);
  }

  unsubscribe(key: object): void {
    this.#count(this.#subscribers.get(key), -1);
    this.#subscribers.delete(key);
    if (this.idle) this.close();
  }

  close(): void {
    this.#native?.close();
    this.#native = undefined;
  }

  #event(native: FSWatcher, type: string, name: string | Buffer | null): void {
    if (native !== this.#native) return;
    const entry = name === null ? null : String(name);
    if (entry === '.' || entry === null || entry === basename(this.#path)) {
      // It was moved, deleted, unmounted or merely re-moded: dead or not, a new watch is right.
      this.close();
      this.#hintAll();
      return;
    }
    for (const { sink, entries } of this.#subscribers.values()) {
      if (entries && !entries.has(entry)) continue;
      sink.hint({ path: within(this.#path, entry), written: type === 'change' });
    }
  }

  #hintAll(): void {
    for (const { sink, ended } of [...this.#subscribers.values()]) {
      ended();
      sink.hint({ path: this.#path });
    }
  }

  #down(error: unknown): void {
    this.close();
    const failure = backendFailure(NAME, this.#path, error);
    for (const { sink } of [...this.#subscribers.values()]) sink.down(failure);
  }

  #count(subscriber: Subscriber | undefined, by: 1 | -1): void {
    if (!subscriber?.persistent) return;
    this.#persistent += by;
    if (this.#persistent > 0) this.#native?.ref();
    else this.#native?.unref();
  }
}

/**
 * The one table shared by the process: a thousand watchers of one volume cost its directories once. An entry
 * lives as long as it has subscribers.
 */
const table = new Map<string, DirectoryWatch>();

class Subscription implements WatchSubscription {
  readonly #sink: HintSink;
  readonly #persistent: boolean;
  /** The native watch of each directory at the last setDirectories. Another one has not heard what came after the check before. */
  readonly #directoriesSet = new Map<string, FSWatcher>();
  /** What was directoriesSet at last, while all of it is watched. */
  #intact: readonly WatchedDirectory[] | undefined;

  constructor(sink: HintSink, persistent: boolean) {
    this.#sink = sink;
    this.#persistent = persistent;
  }

  setDirectories(directories: readonly WatchedDirectory[]): readonly string[] {
    // A tree has many directories, and most looks find them all as they were.
    if (directories === this.#intact) return [];
    this.#intact = directories;
    const opened: string[] = [];
    try {
      for (const directory of directories) {
        if (this.#watch(directory)) opened.push(directory.path);
      }
    } catch (error) {
      this.#intact = undefined;
      throw error;
    }
    const wanted = new Set(directories.map(({ path }) => path));
    for (const path of this.#directoriesSet.keys()) {
      if (!wanted.has(path)) this.#unwatch(path);
    }
    return opened;
  }

  close(): void {
    for (const path of this.#directoriesSet.keys()) this.#unwatch(path);
  }

  #watch({ path, identity, entries }: WatchedDirectory): boolean {
    const shared = table.get(path) ?? new DirectoryWatch(path);
    let native: FSWatcher;
    try {
      native = shared.arm(identity, this.#persistent);
    } catch (error) {
      const code = errnoOf(error);
      if (code === 'ENOENT' || code === 'ENOTDIR') throw error;
      // Searchable but not readable, as ancestors may be: nothing to be had there, and the resync remains.
      if (entries && isDenied(error)) return false;
      throw backendFailure(NAME, path, error);
    }
    table.set(path, shared);
    shared.subscribe(this, {
      sink: this.#sink,
      persistent: this.#persistent,
      entries,
      ended: () => (this.#intact = undefined),
    });
    const isNew = this.#directoriesSet.get(path) !== native;
    this.#directoriesSet.set(path, native);
    return isNew;
  }

  #unwatch(path: string): void {
    this.#directoriesSet.delete(path);
    const shared = table.get(path);
    shared?.unsubscribe(this);
    if (shared?.idle) table.delete(path);
  }
}

/** Hints from `node:fs.watch`: within a millisecond on a local file system. */
export const nodeFsBackend: WatchBackend = {
  name: NAME,
  // inotify: IN_MODIFY and IN_ATTRIB are `change`, everything else is `rename`. Not so on other platforms.
  reportsWrites: process.platform === 'linux',
  needsKernelEvents: true,
  subscribe: (sink, { persistent }) => new Subscription(sink, persistent),
};
