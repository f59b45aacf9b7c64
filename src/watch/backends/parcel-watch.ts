/** Trees that `@parcel/watcher` watches, guarded against every known fault of that module; nothing else may import it. */
import { once } from 'node:events';
import { isMainThread, Worker } from 'node:worker_threads';

import type ParcelWatcher from '@parcel/watcher';

import { dirname, insidePath, isOnWindows, told } from '../../core/ports/platform-path.js';
import { BackendError } from '../../core/errors/backend-error.js';
import { errnoOf } from '../../core/errors/errno.js';
import { nextTurn } from '../../core/scheduling/event-loop.js';
import { processState } from '../../core/process-state.js';
import { exportsOf } from '../../core/errors/package-error.js';
import type { WatchedDirectory } from '../../core/ports/watch-backend.js';
import { backendFailure } from './backend-failure.js';

/** The name of the backend. */
export const parcelName = 'parcel';

/** Receives the events of a tree. */
export interface TreeListener {
  /** Something in the tree may have changed: at `path`, or anywhere. */
  changed(path?: string): void;
  /** The native thread is dead. */
  died(error: BackendError): void;
}

/**
 * Each failure of the native thread leaks an inotify instance (of 128 for a user, by default), a thread and all
 * their watches.
 */
const MAX_DEATHS = 3;

/** Errors on macOS that report dropped events contain this text; all other errors end the subscription. */
const STREAM_LIVES_ON = 'must be re-scanned';

/** One lifetime of the module's inotify thread. */
interface Life {
  watches: number;
  over: boolean;
}

/** What belongs to the native module, like its thread and its leaks: counted by each watcher, these would have no limit. */
interface Native {
  life: Life;
  deaths: number;
  /** The number of subscriptions that were attempted; makes their patterns unique. */
  tried: number;
  /**
   * Native calls are made one at a time. Two overlapping calls could both find the thread missing and rely on one
   * probe, and a directory that is opened before the dead handles of its path are closed reports no events.
   */
  turn: Promise<unknown>;
  /** The trees that are watched, by the path of their root. */
  readonly trees: Map<string, ParcelTree>;
  /** Roots of trees whose listing has leaked: the module would use it for good, and miss what it lacks. */
  readonly stale: Set<string>;
}

const newNative = (): Native => ({
  life: { watches: 0, over: false },
  deaths: 0,
  tried: 0,
  turn: Promise.resolve(),
  trees: new Map(),
  stale: new Set(),
});

/** By module: two installs of it have a thread each. */
const natives = processState('parcel', () => new WeakMap<typeof ParcelWatcher, Native>());

/** That of the module that is loaded. */
let native = newNative();

function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const result = native.turn.then(work);
  native.turn = result.catch(() => undefined);
  return result;
}

function unavailable(message: string, cause?: unknown): BackendError {
  return new BackendError('ERR_BACKEND_UNAVAILABLE', parcelName, message, { cause });
}

/** The name is required: to choose a backend itself, the module starts a shell that searches for watchman. */
function nativeBackend(): ParcelWatcher.BackendType {
  if (process.platform === 'linux') return 'inotify';
  if (process.platform === 'darwin') return 'fs-events';
  if (isOnWindows()) return 'windows';
  throw unavailable(
    `The backend "parcel" does not know the platform ${process.platform}; use the backend "fs"`,
  );
}

/**
 * Loads the native module.
 * @throws {BackendError} `ERR_BACKEND_UNAVAILABLE` when it is missing or must not be used here.
 */
export async function loadParcel(): Promise<typeof ParcelWatcher> {
  if (!isMainThread) {
    throw unavailable(
      'The backend "parcel" cannot be used in a worker thread: it aborts the whole process when the thread ends; use the backend "fs" there',
    );
  }
  nativeBackend();
  const parcel = await importParcel();
  native = natives().get(parcel) ?? native;
  natives().set(parcel, native);
  if (native.deaths >= MAX_DEATHS) {
    throw unavailable(
      `The backend "parcel" died ${native.deaths} times in this process and leaks an inotify instance each time; it is not started again`,
    );
  }
  return parcel;
}

async function importParcel(): Promise<typeof ParcelWatcher> {
  try {
    return exportsOf(await import('@parcel/watcher'));
  } catch (error) {
    throw unavailable(
      'The native module @parcel/watcher cannot be loaded; install it with its optional dependencies for this platform, or use the backend "fs"',
      error,
    );
  }
}

/**
 * Without an inotify instance, `subscribe()` freezes the whole process forever. An existing instance is shared, so
 * only the first subscription needs one. (A race remains: another process may take the last instance within
 * microseconds after the probe, or the thread die. What has died before is heard in the next turn of the event loop.)
 */
async function assertInstance(path: string): Promise<void> {
  if (process.platform !== 'linux') return;
  await nextTurn();
  if (native.life.watches > 0) return;
  try {
    await probeInotify();
  } catch (error) {
    if (errnoOf(error) === 'EMFILE' || errnoOf(error) === 'ENOSPC') {
      throw backendFailure(parcelName, path, error);
    }
    throw unavailable(
      `The backend "parcel" is not started, because no thread with an inotify instance could be created: ${String(error)}`,
      error,
    );
  }
}

/**
 * A tree that is watched as a whole, shared by all watchers of the process, because the module keeps one listing for each
 * path. On Linux it watches the directories that it has listed, and nothing reliably that appears later: it never lists
 * what such a directory already contains, skips those that may not be read, and does not report dropped events.
 */
export class ParcelTree {
  readonly root: WatchedDirectory;
  readonly listeners = new Set<TreeListener>();
  /** The identities of the directories that were listed, by path. */
  readonly #listed: ReadonlyMap<string, string>;
  /**
   * The listed directories that something has happened to: they, and what is below them, may have been moved, or were
   * skipped because they could not be read before.
   */
  readonly #touched = new Set<string>();
  readonly #life: Life;
  readonly #subscribed: Promise<ParcelWatcher.AsyncSubscription>;
  #ended: Promise<void> | undefined;
  /** Whether no more events will come, because the root was deleted or moved away. */
  isGone = false;

  /** @param members the directories of the tree when it was last looked at. */
  constructor(parcel: typeof ParcelWatcher, root: WatchedDirectory, members: readonly WatchedDirectory[]) {
    this.root = root;
    this.#listed = new Map(members.map(({ path, identity }) => [path, identity]));
    this.#life = native.life;
    native.tried += 1;
    // No relative path starts with a slash, so this matches nothing. It makes the subscription private:
    // subscriptions with equal patterns share a native object, even a dead one.
    const ignore = [new RegExp(`^/${native.tried}$`)];
    const onEvents: ParcelWatcher.SubscribeCallback = (error, events) => this.#heard(error, events);
    this.#subscribed = parcel.subscribe(told(root.path), onEvents, { backend: nativeBackend(), ignore });
  }

  /** Changes when `covers()` may give another answer. */
  get version(): number {
    return this.#touched.size;
  }

  /** Whether the module watches this directory of the tree. */
  covers({ path, identity }: WatchedDirectory): boolean {
    if (process.platform !== 'linux') return true;
    if (this.#listed.get(path) !== identity) return false;
    if (this.#touched.size === 0 || path === this.root.path) return true;
    for (let place = path; place !== dirname(this.root.path); place = dirname(place))
      if (this.#touched.has(place)) return false;
    return true;
  }

  async opened(): Promise<this> {
    await this.#subscribed;
    this.#life.watches += 1;
    return this;
  }

  /**
   * The root was, or may have been, deleted or moved away: on Linux the module then forgets every subscription of its
   * path, even one that was opened later for the directory that replaces it, or after it was moved back.
   */
  drop(): void {
    if (this.isGone) return;
    this.isGone = true;
    for (const listener of this.listeners) listener.changed();
  }

  end(): Promise<void> {
    this.isGone = true;
    if (native.trees.get(this.root.path) === this) native.trees.delete(this.root.path);
    return (this.#ended ??= this.#unsubscribe());
  }

  async #unsubscribe(): Promise<void> {
    const subscription = await this.#subscribed.catch(() => undefined);
    await nextTurn();
    if (!subscription) return;
    const leaked = (): unknown => native.stale.add(this.root.path);
    // After a failure, unsubscribe() would start a new thread, and freeze if no instance is available.
    if (this.#life.over) {
      leaked();
      return;
    }
    this.#life.watches -= 1;
    // It rejects if the kernel has already dropped the watch of a directory (that, or its mount, is gone). A second call
    // would have no effect.
    await subscription.unsubscribe().catch(leaked);
  }

  #heard(error: Error | null, events: readonly ParcelWatcher.Event[]): void {
    if (error && !error.message.includes(STREAM_LIVES_ON)) {
      const death = deathOf(this.#life, this.root.path, error);
      for (const listener of this.listeners) listener.died(death);
      return;
    }
    const all = error ? [] : events.map(({ path, type }) => ({ path: insidePath(path), type }));
    for (const { path, type } of all) {
      if (path !== this.root.path || type === 'delete') native.trees.get(path)?.drop();
      if (this.#listed.has(path)) this.#touched.add(path);
    }
    // An empty batch counts: a file that is replaced and then deleted causes one.
    const paths = all.length === 0 ? [undefined] : all.map(({ path }) => path);
    for (const listener of this.listeners) for (const path of paths) listener.changed(path);
  }
}

/** Whether the module can never watch this tree again. */
export const isStale = (root: string): boolean => native.stale.has(root);

/**
 * Watches a tree. Undefined if it is stale.
 * @param members the directories of the tree when it was last looked at.
 * @throws {BackendError} when the guard refuses; otherwise the module's own error, which has no `code`.
 */
export async function joinTree(
  root: WatchedDirectory,
  members: readonly WatchedDirectory[],
  listener: TreeListener,
): Promise<ParcelTree | undefined> {
  await loadParcel();
  return inTurn(async () => {
    const { path } = root;
    // It may have died meanwhile.
    const parcel = await loadParcel();
    const known = native.trees.get(path);
    if (known && known.root.identity !== root.identity) known.drop();
    if (known && !known.isGone) {
      known.listeners.add(listener);
      return known;
    }
    // Ended first: while it is open, the module would use its listing.
    await known?.end();
    if (isStale(path)) return undefined;
    await assertInstance(path);
    const tree = new ParcelTree(parcel, root, members);
    native.trees.set(path, tree);
    tree.listeners.add(listener);
    try {
      return await tree.opened();
    } catch (error) {
      // What it has listed is kept while the thread runs.
      if (native.life.watches > 0) native.stale.add(path);
      await tree.end();
      throw error;
    }
  });
}

/** Ends the watch of a tree unless somebody else listens. Never rejects. */
export function leaveTree(tree: ParcelTree, listener: TreeListener): Promise<void> {
  tree.listeners.delete(listener);
  return inTurn(async () => {
    if (tree.listeners.size === 0) await tree.end();
  });
}

/** On Linux an error (EINTR in its poll() is enough) ends the thread, and with it every subscription. */
function deathOf(life: Life, path: string, error: Error): BackendError {
  if (process.platform === 'linux' && !life.over) {
    life.over = true;
    native.deaths += 1;
    native.life = { watches: 0, over: false };
    for (const [root, tree] of native.trees) {
      native.stale.add(root);
      tree.isGone = true;
    }
  }
  const message = `The backend "parcel" stopped watching ${told(path)}: ${error.message}`;
  return new BackendError('ERR_BACKEND_DOWN', parcelName, message, { cause: error });
}

/**
 * Checks that a new inotify instance is available, and releases it. Takes some 20 ms, most of them to start a
 * thread: here `fs.watch` would reuse the instance that this event loop may have already, while a worker's event
 * loop needs a new one.
 *
 * A thread and its descriptors cost more than an instance, so this also fails in a process that has run out of
 * threads or descriptors.
 * @throws the error of `fs.watch` (`EMFILE`, `ENOSPC`) or of the worker (`ERR_WORKER_INIT_FAILED`).
 */
export async function probeInotify(): Promise<void> {
  const worker = new Worker(`require('node:fs').watch('/').close()`, {
    eval: true,
    // Without the preloads of the program (--import, NODE_OPTIONS).
    execArgv: [],
    env: {},
  });
  // The instance is released when the thread ends.
  await once(worker, 'exit');
}
