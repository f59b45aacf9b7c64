/**
 * One native subscription of `@parcel/watcher`, guarded. All that is known to go wrong inside that module is
 * dealt with here; nothing else may import it.
 */
import { isMainThread } from 'node:worker_threads';

import type ParcelWatcher from '@parcel/watcher';

import { backendFailure } from './backend-failure.js';
import { errnoOf } from '../../core/errno.js';
import { BackendError } from '../../core/errors.js';
import { probeInotify } from './inotify-probe.js';

/** The name of the backend. */
export const parcelName = 'parcel';

/** What a subscription has to say. */
export interface ParcelListener {
  /** Something in the directory may have changed: what stands at `path`, or anything. `isMade`: it was not there before. */
  changed(path?: string, isMade?: boolean): void;
  /** The subscription is dead. */
  died(error: BackendError): void;
}

/** A live native subscription. */
export interface ParcelWatch {
  /** Nothing more will come, and `changed` was called for that: the directory was deleted or moved away, or evicted. */
  readonly gone: boolean;
  /** Which listing of the directory it shares with others: a later one has a greater number. */
  readonly listing: number;
  /** Ends it. Never rejects. */
  close(): Promise<void>;
}

/** Each death leaks an inotify instance (128 a user by default), a thread and all their watches. */
const MAX_DEATHS = 3;

/** In the errors of macOS that say that events were dropped: all others end the subscription. */
const STREAM_LIVES_ON = 'must be re-scanned';

/** From the start of the module's inotify thread to its death. */
interface Life {
  watches: number;
  over: boolean;
}

/** The subscriptions that are open on one path. The module keeps one listing for them all, that of the first. */
interface Root {
  /** Of the listing, see `ParcelWatch`. */
  readonly listing: number;
  /** Which paths the listing has: the depth of the first. */
  readonly depth: string;
  readonly watches: Set<OpenWatch>;
}

interface OpenWatch extends ParcelWatch {
  /** Says that it is gone and closes it. */
  evict(): Promise<void>;
  readonly depth: string;
}

/**
 * Of the process, because the module's native thread and its leaks are: watchers that counted each for
 * themselves would together leak without limit.
 */
const native = {
  life: { watches: 0, over: false } as Life,
  deaths: 0,
  /** How many subscriptions were ever tried; tells them apart. */
  tried: 0,
  /**
   * Native calls are made one at a time. Two that overlap could each find the thread missing and trust one
   * probe, and a directory that is opened before the dead handles on its path are closed is never heard of.
   */
  turn: Promise.resolve() as Promise<unknown>,
  /** What is open on each path. */
  roots: new Map<string, Root>(),
  /** Roots of trees that were open at a death: their listings leak with the thread, and so are never right again. */
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

/** Named, since the module left to choose for itself runs a shell to look for watchman. */
function nativeBackend(): ParcelWatcher.BackendType {
  if (process.platform === 'linux') return 'inotify';
  if (process.platform === 'darwin') return 'fs-events';
  if (process.platform === 'win32') return 'windows';
  throw unavailable(`The backend "parcel" does not know the platform ${process.platform}.`);
}

/**
 * The native module.
 * @throws {BackendError} `ERR_BACKEND_UNAVAILABLE` when it is missing or must not be used here.
 */
export async function loadParcel(): Promise<typeof ParcelWatcher> {
  if (!isMainThread) {
    throw unavailable(
      'The backend "parcel" cannot be used in a worker thread: it aborts the whole process when the thread ends. Use the backend "fs" there.',
    );
  }
  nativeBackend();
  if (native.deaths >= MAX_DEATHS) {
    throw unavailable(
      `The backend "parcel" died ${native.deaths} times in this process and leaks an inotify instance each time; it is not started again.`,
    );
  }
  try {
    return await import('@parcel/watcher');
  } catch (error) {
    throw unavailable(
      'The native module @parcel/watcher cannot be loaded. Install it with its optional dependencies for this platform, or use the backend "fs".',
      error,
    );
  }
}

/**
 * Without an inotify instance `subscribe()` would freeze the whole process for ever. An instance that exists
 * is shared, so only the first subscription needs one. (What remains: somebody takes the last instance in
 * the microseconds after the probe.)
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
      `The backend "parcel" is not started, since a thread with an inotify instance could not be had: ${String(error)}`,
      error,
    );
  }
}

/**
 * Subscribes to a directory, and to all below it that `ignored` does not match (it is matched against paths
 * relative to the directory and must be understood by C++'s `std::regex`). What is ignored is neither
 * crawled nor watched.
 *
 * @param tree everything below is of interest. Then the module's listing of the directory must have it all; one that
 * was made for less is given up, with the subscriptions that share it.
 * @param newerThan a listing that will not do, since it misses something: it is given up likewise.
 * @throws {BackendError} when the guard refuses; else the module's own error, which has no `code`.
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
    // No relative path starts with a slash, so this matches nothing. It makes the subscription a private one:
    // subscriptions with equal patterns share a native object, also one that is dead.
    const ignore = [...ignored, new RegExp(`^/${native.tried}$`)];
    const onEvents: ParcelWatcher.SubscribeCallback = (error, events) => {
      if (error && !error.message.includes(STREAM_LIVES_ON)) {
        listener.died(death(life, path, error));
        return;
      }
      if (events.some((event) => event.type === 'delete' && event.path === path)) {
        // Now, not when somebody asks: while any handle of this path is open, parcel takes its old listing
        // for the truth, and hears nothing of the directory that takes its place.
        watch.gone = true;
        void watch.close();
      }
      // An empty batch counts: a file replaced and then deleted makes one.
      if (error || watch.gone || events.length === 0) listener.changed();
      else for (const { path, type } of events) listener.changed(path, type === 'create');
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
      evict: () => {
        watch.gone = true;
        if (!closed) listener.changed();
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

/** The depth of what is not a tree. */
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
 * Gives up a listing that a tree cannot use: it would never hear of the directories that are not in it. Others who
 * share the listing are told that they are gone; they open anew, which finds the listing of the tree.
 */
async function assertListing(path: string, depth: string, newerThan: number): Promise<void> {
  if (native.stale.has(path)) {
    throw unavailable(
      `The backend "parcel" died while it watched the tree ${path}, and cannot watch it again.`,
    );
  }
  const root = native.roots.get(path);
  if (!root || depth === SHALLOW || (root.depth === depth && root.listing > newerThan)) return;
  for (const watch of root.watches) {
    // The two would give each other up for ever.
    if (watch.depth !== SHALLOW && watch.depth !== depth) {
      throw unavailable(
        `The backend "parcel" watches the tree ${path} already, with other globs to ignore; it cannot do both.`,
      );
    }
  }
  for (const watch of [...root.watches]) await watch.evict();
}

/** On Linux an error (EINTR in its poll() is enough) ends the thread, and so every subscription there is. */
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
  // unsubscribe() after a death would start a new thread, and freeze when it cannot have an instance.
  if (!subscription || life.over) return;
  life.watches -= 1;
  // It rejects when the kernel was first to drop a watch (the directory or its mount is gone). Then nothing
  // is left to be told of, and a second call would do nothing.
  await subscription.unsubscribe().catch(() => undefined);
}
