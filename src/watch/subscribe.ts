/**
 * Subscribes to the first backend that works.
 *
 * | a backend                                             | then                                               |
 * |-------------------------------------------------------|----------------------------------------------------|
 * | watches the directories                               | it is used                                         |
 * | meets a kernel limit, or a file system without events | its error is thrown: all others would meet it, too |
 * | is not suited to the target                           | the next one is tried                              |
 * | fails otherwise                                       | the next one is tried; if all fail, the first such |
 * |                                                       | error is thrown                                    |
 */
import { BackendError } from '../core/backend-error.js';
import { hasMoved } from '../core/errno.js';
import type { Lifetime } from '../core/lifetime.js';
import type { Hint, WatchBackend, WatchedDirectory, WatchSubscription } from '../core/watch-backend.js';
import { backendFailure, hasNoEvents, isUnsuited } from './backends/backend-failure.js';

/** What is to be watched. */
export interface Wanted {
  /** For messages. */
  readonly path: string;
  readonly directories: () => readonly WatchedDirectory[];
  /** The file system without events that some of the directories are on, if any. */
  readonly eventless: string | undefined;
  readonly persistent: boolean;
  readonly receiver: { hint(cause: string, hint?: Hint): void };
  readonly up: (subscribed: Subscribed) => void;
  /** The subscription no longer works. Not called before `up`. */
  readonly lost: (subscription: Subscribed, error: unknown) => void;
}

/** A subscription that works. */
export interface Subscribed {
  readonly backend: WatchBackend;
  readonly watches: WatchSubscription;
}

/** @throws {BackendError} (rejects) when no backend works. */
export async function subscribe(
  backends: Iterable<WatchBackend>,
  wanted: Wanted,
  lifetime: Lifetime,
): Promise<void> {
  let first: BackendError | undefined;
  for (const backend of backends) {
    try {
      await subscribeTo(backend, wanted, lifetime);
      return;
    } catch (error) {
      const failure = backendFailure(backend.name, wanted.path, error);
      if (failure.sysctl !== undefined || hasNoEvents(failure)) throw failure;
      if (!first || isUnsuited(first)) first = failure;
      if (lifetime.ended) break;
    }
  }
  if (first) throw first;
}

async function subscribeTo(backend: WatchBackend, wanted: Wanted, lifetime: Lifetime): Promise<void> {
  const error = eventlessError(backend, wanted);
  if (error) throw error;
  const { name } = backend;
  let failure: { readonly error: unknown } | undefined;
  let subscribed: Subscribed | undefined;
  const sink = {
    hint: (hint?: Hint) => wanted.receiver.hint(name, hint),
    down: (error: unknown) => {
      failure ??= { error };
      if (subscribed) wanted.lost(subscribed, error);
    },
  };
  // Tracked, because otherwise nothing could release the result.
  const watches = await lifetime.track(
    Promise.resolve(backend.subscribe(sink, { persistent: wanted.persistent })),
  );
  try {
    lifetime.throwIfEnded();
    // Not tracked, because it may hang.
    await lifetime.untilEnd(setDirectories(watches, wanted));
    // The subscription may have ended before this continues.
    lifetime.throwIfEnded();
    if (failure) throw failure.error;
    subscribed = { backend, watches };
    wanted.up(subscribed);
  } catch (error) {
    release(watches, lifetime);
    throw error;
  }
}

async function setDirectories(watches: WatchSubscription, { directories }: Wanted): Promise<void> {
  try {
    await watches.setDirectories(directories());
  } catch (error) {
    // The look that follows finds out where they are.
    if (!hasMoved(error)) throw error;
  }
}

/** Why this backend would report no events for the target; undefined if it would. */
export function eventlessError(
  { name, needsKernelEvents = false }: WatchBackend,
  { path, eventless }: Pick<Wanted, 'path' | 'eventless'>,
): BackendError | undefined {
  if (!needsKernelEvents || eventless === undefined) return undefined;
  const message = `Cannot watch "${path}": it is on ${eventless}, which reports no events; it is polled`;
  return new BackendError('ERR_BACKEND_NO_EVENTS', name, message);
}

/** Closes a subscription that is no longer needed. It must not throw, but a user's backend may. */
export function release(watches: WatchSubscription, lifetime: Lifetime): void {
  const closing = Promise.resolve()
    .then(() => watches.close())
    .catch(() => undefined);
  void lifetime.track(closing);
}
