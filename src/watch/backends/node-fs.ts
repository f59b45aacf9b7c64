/**
 * The backend `fs`: one non-recursive `node:fs.watch` for each directory, shared by all watchers of the process.
 *
 * A native watch is bound to an inode, not to a path.
 *
 * | what happens                                    | the native watch                                    |
 * |-------------------------------------------------|-----------------------------------------------------|
 * | an event about an entry                         | stays; a hint to the listeners of this entry        |
 * | an event about the directory itself: a chmod or | is opened again, which on Linux keeps the watch of  |
 * | chown, or it was moved, deleted or unmounted    | the kernel if it is alive; a hint to all listeners  |
 * | the same, and it cannot be opened               | is closed; the look that finds a directory opens it |
 * | an event of a file that is mounted by itself    | the same: it may have been written, or be gone      |
 * | another directory is at its path                | is replaced by the look that finds the new identity |
 * | an ancestor or a mounted file may not be read   | none; each look tries again. If there is no other,  |
 * |                                                 | the backend has failed                              |
 * | EPERM, by which Windows says that it was removed| is closed; a hint to all listeners                  |
 * | any other error                                 | is closed; the backend has failed                   |
 */
import type { FSWatcher } from 'node:fs';

import { nodeFileSystem } from '../../core/ports/builtins.js';
import type { BackendError } from '../../core/errors/backend-error.js';
import { errnoOf, isDenied } from '../../core/errors/errno.js';
import { mayHaveLostBytes } from '../../core/ports/path-bytes.js';
import { basename, pathForCall } from '../../core/ports/platform-path.js';
import { processState } from '../../core/process-state.js';
import type { FileSystem } from '../../core/ports/file-system.js';
import { nextSlice, run, type Steps } from '../../core/scheduling/steps.js';
import type {
  HintSink,
  WatchBackend,
  WatchedDirectory,
  WatchSubscription,
} from '../../core/ports/watch-backend.js';
import { within } from '../../fs/absolute-path.js';
import { Listeners } from '../listeners.js';
import { backendFailure } from './backend-failure.js';

const NAME = 'fs';

/** On other systems, names are folded, or an event about the directory itself has its own name. */
const IS_INOTIFY = process.platform === 'linux';

/** `fs.watch`, or that of the option `fs`. */
type Watch = NonNullable<FileSystem['watch']>;

/** A watcher that listens to a native watch, perhaps that of another copy of the library. */
interface Listener {
  readonly sink: HintSink;
  readonly persistent: boolean;
  /** The native watch has ended; the next `setDirectories` opens another one. */
  ended(): void;
}

/** What the watchers of the process share. */
type SharedWatch = Pick<DirectoryWatch, 'arm' | 'listen' | 'leave'>;

/** One native watch. */
class DirectoryWatch {
  readonly #path: string;
  readonly #watch: Watch;
  readonly #listeners = new Listeners<Listener>();
  /** The number of listeners that keep the process alive. */
  #persistent = 0;
  #native: FSWatcher | undefined;
  #identity: string | undefined;
  #isFile = false;
  /** Whether an event about the directory itself is one of a directory above it that is watched, too. */
  #isAncestor = false;
  /** Whether an event about the directory itself has a name that no child has. */
  #hasOwnName = IS_INOTIFY;
  /** Whether listeners are still to be told that another directory is watched. */
  #isReplaced = false;
  /** Stands for the opening since which nothing was missed. */
  #since = {};

  constructor(path: string, watch: Watch) {
    this.#path = path;
    this.#watch = watch;
  }

  /** Ensures that this directory is watched. Returns the opening since which it is. */
  arm({ identity, isFile = false, isAncestor = false }: WatchedDirectory, persistent: boolean): object {
    if (this.#native && this.#identity === identity) return this.#since;
    const isReplaced = this.#native !== undefined;
    this.#isFile = isFile;
    this.#isAncestor = isAncestor;
    this.#open(persistent);
    this.#identity = identity;
    this.#since = {};
    this.#isReplaced ||= isReplaced;
    return this.#since;
  }

  /** Returns the paths of what was not listened to before. */
  listen(who: Listener, entries: readonly string[] | undefined): readonly string[] {
    if (who.persistent && !this.#listeners.has(who)) this.#count(1);
    const added = this.#listeners.set(who, IS_INOTIFY ? entries : undefined);
    // Other watchers relied on the old watch. They may leave at once, so the new one listens already.
    if (this.#isReplaced) {
      this.#isReplaced = false;
      this.#hintAll(true);
    }
    return added ? added.map((entry) => within(this.#path, entry)) : [this.#path];
  }

  /** Returns whether nobody listens any more. */
  leave(who: Listener): boolean {
    if (who.persistent && this.#listeners.has(who)) this.#count(-1);
    this.#listeners.delete(who);
    if (this.#listeners.isEmpty) this.#close();
    return this.#listeners.isEmpty;
  }

  /**
   * Opens a native watch, and then closes the previous one. While both are on the same directory, they are one watch
   * of the kernel, so nothing is missed.
   */
  #open(persistent: boolean): void {
    const native = this.#opened(persistent);
    native.on('change', (_type, name) => {
      if (native === this.#native) this.#event(name as string | null);
    });
    native.on('error', (error) => {
      if (native !== this.#native) return;
      // Windows: the directory was removed.
      if (isDenied(error)) {
        this.#close();
        this.#hintAll(true);
      } else this.#down(error);
    });
    this.#close();
    this.#native = native;
    if (this.#persistent > 0) native.ref();
  }

  /**
   * An event about the directory itself carries its base name, which a child may also have. With "/." at the end, that
   * name is ".", which no child has.
   */
  #opened(persistent: boolean): FSWatcher {
    const open = this.#watch;
    this.#hasOwnName = IS_INOTIFY && !this.#isFile;
    try {
      return open(pathForCall(this.#isFile ? this.#path : `${this.#path}/.`), { persistent });
    } catch (error) {
      // It may be read, but not searched; or its path is as long as a path can be.
      const isTooLong = errnoOf(error) === 'ENAMETOOLONG';
      if (!isTooLong && (!isDenied(error) || this.#isAncestor)) throw error;
      this.#hasOwnName = false;
      return open(pathForCall(this.#path), { persistent });
    }
  }

  #event(entry: string | null): void {
    // A name that is not UTF-8 may be that of any entry.
    if (entry !== null && mayHaveLostBytes(entry)) {
      this.#hintAll(false);
      return;
    }
    if (entry === null || entry === '.' || (!this.#hasOwnName && entry === basename(this.#path))) {
      this.#hintAll(!this.#survives());
      return;
    }
    const all = this.#listeners.to(entry);
    if (all.length === 0) return;
    const hint = { path: within(this.#path, entry), event: all.length > 1 ? {} : undefined };
    for (const { sink } of all) sink.hint(hint);
  }

  /**
   * Something happened to the directory itself. The event does not say whether the watch has ended or kubelet made a
   * chmod or chown before a swap. If another directory is there now, the looks that follow find it; elsewhere than on Linux
   * they find it by its identity, and something may have happened to a child with the same name.
   */
  #survives(): boolean {
    if (!IS_INOTIFY) return true;
    try {
      this.#open(this.#persistent > 0);
      return true;
    } catch {
      this.#close();
      return false;
    }
  }

  #hintAll(hasEnded: boolean): void {
    const all = this.#listeners.all;
    if (hasEnded) for (const who of all) who.ended();
    const hint = { path: this.#path, event: {} };
    for (const { sink } of all) sink.hint(hint);
  }

  #down(error: unknown): void {
    this.#close();
    const failure = backendFailure(NAME, this.#path, error);
    for (const { sink } of this.#listeners.all) sink.down(failure);
  }

  #close(): void {
    this.#native?.close();
    this.#native = undefined;
  }

  #count(by: 1 | -1): void {
    this.#persistent += by;
    if (this.#persistent > 0) this.#native?.ref();
    else this.#native?.unref();
  }
}

type Table = Map<string, SharedWatch>;

/**
 * The native watches by path: a thousand watchers of one volume need only one for each directory. An entry lives as long as
 * it has listeners.
 */
const tables = processState('watches', () => new WeakMap<Watch, Table>());

function tableOf(watch: Watch): Table {
  let table = tables().get(watch);
  if (!table) tables().set(watch, (table = new Map<string, SharedWatch>()));
  return table;
}

const NOTHING: readonly string[] = [];

/** How many directories are compared or left at once, however long this turn has been: a millisecond. */
const AT_ONCE = 100;

class Subscription implements WatchSubscription, Listener {
  readonly sink: HintSink;
  readonly persistent: boolean;
  readonly #native: Watch;
  readonly #isDeep: boolean;
  readonly #table: Table;
  /** The directories of the last call. */
  #directories: readonly WatchedDirectory[] = [];
  /** Whether all of them are watched. */
  #isIntact = false;
  /** Those that may not be read, and are tried again at each call. */
  #denied: { readonly directory: WatchedDirectory; readonly failure: BackendError }[] = [];
  /** Those that are watched, by path, each with the opening since which nothing was missed there. */
  readonly #watched = new Map<string, { readonly directory: WatchedDirectory; readonly since: object }>();
  #isClosed = false;

  constructor(sink: HintSink, persistent: boolean, native: Watch, isDeep: boolean) {
    this.sink = sink;
    this.#isDeep = isDeep;
    this.persistent = persistent;
    this.#native = native;
    this.#table = tableOf(native);
  }

  ended(): void {
    this.#isIntact = false;
  }

  setDirectories(directories: readonly WatchedDirectory[]): readonly string[] | Promise<readonly string[]> {
    const isSame = this.#isIntact && directories === this.#directories;
    if (isSame && this.#denied.length === 0) return NOTHING;
    const tried = isSame ? this.#denied.map(({ directory }) => directory) : directories;
    return run(this.#watchAll(tried, directories));
  }

  close(): void | Promise<void> {
    this.#isClosed = true;
    return run(this.#leaveAllBut([]));
  }

  *#watchAll(
    tried: readonly WatchedDirectory[],
    directories: readonly WatchedDirectory[],
  ): Steps<readonly string[]> {
    const wasIntact = this.#isIntact;
    this.#isIntact = true;
    this.#denied = [];
    const missed: string[] = [];
    try {
      for (const [at, directory] of tried.entries()) {
        const isKnown = wasIntact && this.#watched.get(directory.path)?.directory === directory;
        const paths = isKnown ? NOTHING : this.#watch(directory);
        for (const path of paths) missed.push(path);
        // To open one takes longer than to look up a file. On macOS, those of one turn are one start of the stream.
        if ((paths.length > 0 || at >= AT_ONCE) && !this.#isDeep) yield* nextSlice();
        if (this.#isClosed) return NOTHING;
      }
      yield* this.#leaveAllBut(directories);
      const [denied] = this.#denied;
      // Nothing would be heard.
      if (denied && this.#watched.size === 0) throw denied.failure;
    } catch (error) {
      // Some of them are watched.
      this.#isIntact = false;
      throw error;
    }
    this.#directories = directories;
    return missed;
  }

  /** Returns the paths where something may have been missed since the last call. */
  #watch(directory: WatchedDirectory): readonly string[] {
    const { path, entries, isAncestor, isFile } = directory;
    if (this.#isDeep && entries && (isAncestor === true || path === '/')) {
      this.#leave(path);
      return NOTHING;
    }
    const shared = this.#table.get(path) ?? new DirectoryWatch(path, this.#native);
    let since: object;
    try {
      since = shared.arm(directory, this.persistent);
    } catch (error) {
      const code = errnoOf(error);
      if (code === 'ENOENT' || code === 'ENOTDIR') throw error;
      const failure = backendFailure(NAME, path, error);
      // What may not be read cannot be watched. Of an ancestor, or a file that was mounted, the resync finds the changes.
      if ((isAncestor === true || isFile === true) && isDenied(error)) {
        this.#leave(path);
        this.#denied.push({ directory, failure });
        return NOTHING;
      }
      throw failure;
    }
    this.#table.set(path, shared);
    const added = shared.listen(this, entries);
    const isIntact = this.#watched.get(path)?.since === since;
    this.#watched.set(path, { directory, since });
    return isIntact ? added : [path];
  }

  *#leaveAllBut(wanted: readonly WatchedDirectory[]): Steps<void> {
    const kept = new Set(wanted.map(({ path }) => path));
    let left = 0;
    for (const path of this.#watched.keys()) {
      if (kept.has(path)) continue;
      left += 1;
      if (left > AT_ONCE && !this.#isDeep) yield* nextSlice();
      this.#leave(path);
    }
  }

  #leave(path: string): void {
    this.#watched.delete(path);
    if (this.#table.get(path)?.leave(this) === true) this.#table.delete(path);
  }
}

/**
 * Hints from `node:fs.watch`: within a millisecond on a local file system.
 * @param isDeep whether a native watch hears of everything below its directory, as FSEvents does on macOS: that of an
 * ancestor would be woken by the events of the whole disk, so what happens to ancestors is left to the resync.
 */
export const nodeFsBackend = (
  native: Watch = nodeFileSystem.watch,
  isDeep = process.platform === 'darwin',
): WatchBackend => ({
  name: NAME,
  needsKernelEvents: true,
  subscribe: (sink, { persistent }) => new Subscription(sink, persistent, native, isDeep),
});
