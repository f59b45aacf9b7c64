/**
 * One native subscription of `@parcel/watcher`, guarded against every known fault of that module; nothing else may
 * import it.
 */
import { isMainThread } from 'node:worker_threads';

import type ParcelWatcher from '@parcel/watcher';

import { backendFailure } from './backend-failure.js';
import { errnoOf } from '../../core/errno.js';
import { BackendError } from '../../core/backend-error.js';
import { exportsOf } from '../../core/package-error.js';
import { probeInotify } from './inotify-probe.js';

/** The name of the backend. */
export const parcelName = 'parcel';

/** Receives the events of a subscription. */
export interface ParcelListener {
  /** Something in the directory may have changed: at `path`, or anywhere. `isMade`: the entry was created. */
  changed(path?: string, isMade?: boolean): void;
  /** The subscription is dead. */
  died(error: BackendError): void;
}

/** A live native subscription. */
export interface ParcelWatch {
  /**
   * Whether no more events will come, because the directory was deleted or moved away, or the subscription was evicted.
   * `changed` was called for that.
   */
  readonly gone: boolean;
  /**
   * The number of the directory listing that it shares with other subscriptions; later listings have higher
   * numbers.
   */
  readonly listing: number;
  /** Ends the subscription. Never rejects. */
  close(): Promise<void>;
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

/** The open subscriptions of one path. The module keeps one listing for all of them: the listing of the first one. */
interface Root {
  /** The number of the listing, see `ParcelWatch`. */
  readonly listing: number;
  /** Which paths are in the listing: the depth of the first subscription. */
  readonly depth: string;
  readonly watches: Set<OpenWatch>;
}

interface OpenWatch extends ParcelWatch {
  /** Reports that the subscription has ended, and closes it when its turn comes. */
  drop(): void;
  /** The same, within the current turn. */
  evict(): Promise<void>;
  readonly depth: string;
}

/**
 * This state belongs to the process, like the module's native thread and its leaks: if each watcher counted by itself,
 * together they would leak without limit.
 */
const native = {
  life: { watches: 0, over: false } as Life,
  deaths: 0,
  /** The number of subscriptions that were attempted; makes their patterns unique. */
  tried: 0,
  /**
   * Native calls are made one at a time. Two overlapping calls could both find the thread missing and rely on one
   * probe, and a directory that is opened before the dead handles of its path are closed reports no events.
   */
  turn: Promise.resolve() as Promise<unknown>,
  /** The open subscriptions by path. */
  roots: new Map<string, Root>(),
  /**
   * Roots of trees that were open when the thread failed: their listings leak with the thread, and never become right
   * again.
   */
  stale: new Set<string>(),
};

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
  if (process.platform === 'win32') return 'windows';
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
  if (native.deaths >= MAX_DEATHS) {
    throw unavailable(
      `The backend "parcel" died ${native.deaths} times in this process and leaks an inotify instance each time; it is not started again`,
    );
  }
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
 * microseconds after the probe.)
 */
async function assertInstance(path: string): Promise<void> {
  if (process.platform !== 'linux' || native.life.watches > 0) return;
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
 * Subscribes to a directory and everything below it that `ignored` does not match (it is matched against paths
 * relative to the directory, and must be valid for C++'s `std::regex`). Ignored directories are neither listed nor
 * watched.
 *
 * @param tree everything below matters. Then the module's listing of the directory must be complete; a listing that was
 * made for less is dropped, together with its subscriptions.
 * @param newerThan the number of a listing that must not be used, because something is missing from it: it is also
 * dropped.
 * @throws {BackendError} when the guard refuses; otherwise the module's own error, which has no `code`.
 */
export async function openParcelWatch(
  path: string,
  ignored: readonly RegExp[],
  listener: ParcelListener,
  { tree = false, newerThan = 0 }: { readonly tree?: boolean; readonly newerThan?: number | undefined } = {},
): Promise<ParcelWatch> {
  return inTurn(async () => {
    const parcel = await loadParcel();
    const depth = tree ? `tree ${ignored.map(String).join(' ')}` : SHALLOW;
    await assertListing(path, depth, newerThan);
    await assertInstance(path);
    const life = native.life;
    native.tried += 1;
    // No relative path starts with a slash, so this matches nothing. It makes the subscription private:
    // subscriptions with equal patterns share a native object, even a dead one.
    const ignore = [...ignored, new RegExp(`^/${native.tried}$`)];
    const onEvents: ParcelWatcher.SubscribeCallback = (error, events) => {
      if (error && !error.message.includes(STREAM_LIVES_ON)) {
        listener.died(death(life, path, error));
        return;
      }
      deliver(error ? [] : events, path, watch, listener);
    };
    const subscribed = parcel.subscribe(path, onEvents, { backend: nativeBackend(), ignore });
    let ended: Promise<void> | undefined;
    let closed: Promise<void> | undefined;
    const finish = (): Promise<void> => (ended ??= end(life, subscribed).finally(forget));
    const watch = {
      gone: false,
      listing: native.tried,
      depth,
      close: () => (closed ??= inTurn(finish)),
      drop: () => {
        if (watch.gone) return;
        watch.gone = true;
        if (!closed) listener.changed();
        void watch.close();
      },
      evict: () => {
        watch.drop();
        return finish();
      },
    };
    const forget = remember(path, watch);
    watch.listing = native.roots.get(path)?.listing ?? watch.listing;
    await subscribed.catch((error: unknown) => {
      forget();
      throw error;
    });
    life.watches += 1;
    return watch;
  });
}

function deliver(
  events: readonly ParcelWatcher.Event[],
  path: string,
  watch: OpenWatch,
  listener: ParcelListener,
): void {
  for (const { path: about, type } of events) if (about !== path || type === 'delete') dropAll(about);
  // An empty batch counts: a file that is replaced and then deleted causes one.
  if (watch.gone || events.length === 0) listener.changed();
  else for (const { path: about, type } of events) listener.changed(about, type === 'create');
}

/** The depth of a subscription that is not recursive. */
const SHALLOW = 'shallow';

function remember(path: string, watch: OpenWatch): () => void {
  const root = native.roots.get(path) ?? { listing: watch.listing, depth: watch.depth, watches: new Set() };
  native.roots.set(path, root);
  root.watches.add(watch);
  return () => {
    root.watches.delete(watch);
    if (root.watches.size === 0 && native.roots.get(path) === root) native.roots.delete(path);
  };
}

/**
 * Drops every subscription of a path that was, or may have been, deleted or moved away: on Linux the module then
 * forgets all of them, even those that were opened later for the directory that replaces it, or after it was moved
 * back. It sends an event only to the subscriptions of the old directory and of its parent. While any of them is open,
 * it relies on its old listing.
 */
function dropAll(path: string): void {
  for (const watch of native.roots.get(path)?.watches ?? []) watch.drop();
}

/**
 * Drops a listing that a tree cannot use: directories that are not in it would never be reported. Other subscriptions
 * of the listing are closed, and open again with the listing of the tree.
 */
async function assertListing(path: string, depth: string, newerThan: number): Promise<void> {
  if (native.stale.has(path)) {
    throw unavailable(
      `The backend "parcel" died while it watched the tree ${path}, and cannot watch it again; use the backend "fs"`,
    );
  }
  const root = native.roots.get(path);
  if (!root || depth === SHALLOW || (root.depth === depth && root.listing > newerThan)) return;
  for (const watch of root.watches) {
    // Two such trees would keep dropping each other's listing.
    if (watch.depth !== SHALLOW && watch.depth !== depth) {
      throw unavailable(
        `The backend "parcel" already watches the tree ${path} with other globs to ignore; it cannot do both`,
      );
    }
  }
  for (const watch of [...root.watches]) await watch.evict();
}

/** On Linux an error (EINTR in its poll() is enough) ends the thread, and with it every subscription. */
function death(life: Life, path: string, error: Error): BackendError {
  if (process.platform === 'linux' && !life.over) {
    life.over = true;
    native.deaths += 1;
    native.life = { watches: 0, over: false };
    for (const [root, { depth }] of native.roots) if (depth !== SHALLOW) native.stale.add(root);
  }
  return new BackendError(
    'ERR_BACKEND_DOWN',
    parcelName,
    `The backend "parcel" stopped watching ${path}: ${error.message}`,
    { cause: error },
  );
}

async function end(life: Life, subscribed: Promise<ParcelWatcher.AsyncSubscription>): Promise<void> {
  const subscription = await subscribed.catch(() => undefined);
  // After a failure, unsubscribe() would start a new thread, and freeze if no instance is available.
  if (!subscription || life.over) return;
  life.watches -= 1;
  // It rejects if the kernel has already dropped the watch (the directory or its mount is gone). Then there is nothing
  // left to end, and a second call would have no effect.
  await subscription.unsubscribe().catch(() => undefined);
}
