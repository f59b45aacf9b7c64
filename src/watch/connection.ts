/**
 * Keeps one backend subscribed to the directories that looks have found.
 *
 * | state        | directories are set | backend fails  | no events     | events again | retry succeeds | retry fails  |
 * |--------------|---------------------|----------------|---------------|--------------|----------------|--------------|
 * | `closed`     | → `up`              | → `degraded`   | → `suspended` | –            | –              | –            |
 * | `up`         | they are watched    | → `recovering` | → `suspended` | –            | –              | –            |
 * | `recovering` | they are kept       | –              | → `suspended` | –            | → `up`         | → `degraded` |
 * | `degraded`   | they are kept       | –              | → `suspended` | –            | → `up`         | next retry   |
 * | `suspended`  | they are kept       | –              | –             | → `degraded` | –              | –            |
 *
 * In every state except `closed` and `up`, the target is polled. In `recovering` and `degraded`, the backends are tried
 * again with growing delays. In `suspended` they are not, because the target is on a file system without events, and
 * retrying is useless until the path leads elsewhere. `degraded` is emitted on the way into `degraded` or `suspended`,
 * `recovered` on the way from there to `up`.
 */
import pRetry, { AbortError } from 'p-retry';

import { Backoff } from '../core/scheduling/backoff.js';
import { waitAtMost, withDeadline } from '../core/scheduling/deadline.js';
import { BackendError } from '../core/errors/backend-error.js';
import type { Clock } from '../core/ports/clock.js';
import { hasMoved } from '../core/errors/errno.js';
import type { FileSystem } from '../core/ports/file-system.js';
import { knownPart } from '../core/ports/path-bytes.js';
import type { Random } from '../core/ports/random.js';
import type { Lifetime } from '../core/lifecycle/lifetime.js';
import { sleep } from '../core/scheduling/sleep.js';
import type { Hint, WatchBackend, WatchedDirectory, WatchSubscription } from '../core/ports/watch-backend.js';
import { backendFailure, hasNoEvents } from './backends/backend-failure.js';
import { backendOf, type BackendName } from './backends/catalog.js';
import type { ChangeCause } from './change.js';
import { tickEvery } from './ticker.js';
import type { WatcherEvent } from './watcher-events.js';
import type { WatcherState, WatcherStatus } from './watcher-status.js';

/**
 * How long a backend may take to watch directories, or to close, ms. On a slow disk, `parcel` lists a tree of a million
 * entries in seconds.
 */
const LONGEST_ANSWER_MS = 10_000;

interface ConnectionOptions {
  readonly backend: BackendName | WatchBackend;
  readonly persistent: boolean;
  readonly pollIntervalMs: number;
  readonly restartDelayMs: number;
  readonly maxRestartDelayMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly fs: Pick<FileSystem, 'watch'>;
}

/** Receives the hints and events of the connection. */
interface Receiver {
  hint(cause: ChangeCause, hint?: Hint): void;
  emit(event: WatcherEvent): void;
}

/** A subscription that works. */
interface Subscribed {
  readonly backend: WatchBackend;
  readonly watches: WatchSubscription;
}

type State =
  | { readonly tag: 'closed' }
  | { readonly tag: 'up'; readonly subscribed: Subscribed; readonly since: number }
  | { readonly tag: 'recovering'; readonly error: BackendError }
  | { readonly tag: 'degraded' | 'suspended'; readonly error: BackendError; readonly since: number };

/** A connection to a backend. */
export class Connection {
  readonly #path: string;
  readonly #options: ConnectionOptions;
  readonly #receiver: Receiver;
  readonly #lifetime: Lifetime;
  /** The attempts since the last failure. */
  #backoff: Backoff | undefined;
  #state: State = { tag: 'closed' };
  #attempt: Promise<unknown> | undefined;
  #stopPolling: (() => void) | undefined;
  /** What is listened to, or would be. */
  directories: readonly WatchedDirectory[] = [];
  /** The file system without events that some of the directories are on, if any. */
  eventless: string | undefined;
  /** The number of attempts to subscribe again. */
  restarts = 0;

  /** @param path the watched path, for messages. */
  constructor(path: string, options: ConnectionOptions, receiver: Receiver, lifetime: Lifetime) {
    this.#path = path;
    this.#options = options;
    this.#receiver = receiver;
    this.#lifetime = lifetime;
  }

  /** The state of the watcher while it is running. */
  get state(): Extract<WatcherState, 'starting' | 'watching' | 'recovering' | 'degraded'> {
    const { tag } = this.#state;
    if (tag === 'up') return 'watching';
    // The first look has reported, and the backend is still being subscribed.
    if (tag === 'closed') return 'starting';
    return tag === 'suspended' ? 'degraded' : tag;
  }

  /** The backend that is subscribed; undefined while the target is polled. */
  get backend(): WatchBackend | undefined {
    return this.#state.tag === 'up' ? this.#state.subscribed.backend : undefined;
  }

  /** How often the target is polled, ms; undefined while events come. */
  get pollsMs(): number | undefined {
    const { backend } = this;
    return !backend || backend.name === 'poll' ? this.#options.pollIntervalMs : undefined;
  }

  /** Why no backend is subscribed, for the status; null while one is. */
  get degraded(): WatcherStatus['degraded'] {
    if (!('error' in this.#state)) return null;
    const { code, message, sysctl = null } = this.#state.error;
    return { code, message, sysctl };
  }

  /**
   * Watches these directories. Returns those that were not watched before, or may have been moved in the meantime,
   * which must be looked at again. If this fails, the backend counts as failed.
   * @param eventless the file system without events that some of the directories are on, if any.
   */
  listen(
    directories: readonly WatchedDirectory[],
    eventless: string | undefined,
  ): readonly string[] | Promise<readonly string[]> {
    this.directories = directories;
    this.eventless = eventless;
    const state = this.#state;
    if (state.tag === 'closed') return this.#subscribe();
    if (state.tag === 'suspended' && eventless === undefined) this.#resume(state);
    if (state.tag !== 'up') return [];
    const { backend, watches } = state.subscribed;
    const error = this.#eventlessError(backend);
    if (error) {
      this.#suspend(error);
      return [];
    }
    try {
      const opened = this.#setDirectories(watches);
      return opened instanceof Promise ? opened.catch((error: unknown) => this.#refused(error)) : opened;
    } catch (error) {
      return this.#refused(error);
    }
  }

  /** Resolves when no attempt is under way, even during the delay before the next attempt. */
  async idle(): Promise<void> {
    while (this.#attempt) await this.#attempt.catch(() => undefined);
  }

  /** Ends the connection, once the lifetime has ended. */
  close(): void {
    this.#stopPolling?.();
    if (this.#state.tag === 'up') this.#release(this.#state.subscribed.watches);
    this.#state = { tag: 'closed' };
  }

  get #paths(): readonly string[] {
    return this.directories.map(({ path }) => path);
  }

  /** Subscribes. A failure leads to polling, not to an error. */
  async #subscribe(): Promise<readonly string[]> {
    try {
      await this.#connect();
      return this.#paths;
    } catch (error) {
      if (this.#lifetime.ended) return [];
      this.#degrade(error as BackendError);
      this.#recover();
      return [];
    }
  }

  /** The backend cannot watch these directories. */
  #refused(error: unknown): readonly string[] {
    if (hasMoved(error)) return this.#paths;
    this.#lost(error);
    return [];
  }

  #suspend(error: BackendError): void {
    this.#takeDown(error);
    this.#degrade(error);
    this.#poll();
  }

  #resume(state: Extract<State, { tag: 'degraded' | 'suspended' }>): void {
    this.#state = { ...state, tag: 'degraded' };
    this.#backoff = undefined;
    this.#recover();
  }

  #lost(error: unknown): void {
    if (this.#takeDown(error)) this.#recover();
  }

  /** False if it is not up. */
  #takeDown(error: unknown): boolean {
    if (this.#state.tag !== 'up' || this.#lifetime.ended) return false;
    const { since, subscribed } = this.#state;
    this.#state = { tag: 'recovering', error: backendFailure(subscribed.backend.name, this.#path, error) };
    this.#release(subscribed.watches);
    // Only a subscription that lived longer than the maximum delay is restarted quickly.
    if (this.#options.clock.monotonic() - since > this.#options.maxRestartDelayMs) this.#backoff = undefined;
    return true;
  }

  /** If it was degraded for another reason before, that was told. */
  #degrade(error: BackendError): void {
    const { clock, pollIntervalMs } = this.#options;
    const before = this.#state;
    const since = before.tag === 'degraded' ? before.since : clock.monotonic();
    this.#state = { tag: hasNoEvents(error) ? 'suspended' : 'degraded', error, since };
    if (before.tag !== 'degraded')
      this.#receiver.emit({ name: 'degraded', payload: { error, pollIntervalMs } });
  }

  #poll(): void {
    const { clock, pollIntervalMs: intervalMs, persistent } = this.#options;
    const tick = (event: object): void => this.#receiver.hint('poll', { event });
    this.#stopPolling ??= tickEvery({ clock, intervalMs, persistent }, tick);
  }

  /** Polls, and tries to subscribe again unless the connection is suspended. */
  #recover(): void {
    const down = this.#state;
    this.#poll();
    if (down.tag !== 'recovering' && down.tag !== 'degraded') return;
    const recovery = pRetry((attempt) => this.#reconnect(attempt), {
      retries: Infinity,
      // p-retry counts, aborts, and knows which errors end it; each attempt begins by waiting through the Clock, which
      // p-retry cannot do, so that p-retry itself waits 0 ms.
      minTimeout: 0,
      maxTimeout: 0,
      signal: this.#lifetime.signal,
    });
    // It ends with the connection, or when there are no events: then it is suspended.
    void this.#lifetime.track(recovery.catch(() => undefined));
  }

  async #reconnect(attempt: number): Promise<void> {
    const { clock, persistent, random, restartDelayMs, maxRestartDelayMs: maxDelayMs } = this.#options;
    const down = this.#state;
    if (down.tag !== 'recovering' && down.tag !== 'degraded') return;
    this.#backoff ??= new Backoff({ firstDelayMs: restartDelayMs, maxDelayMs, random });
    const delayMs = this.#backoff.next();
    await sleep(clock, delayMs, { signal: this.#lifetime.signal, ref: persistent });
    this.restarts += 1;
    this.#receiver.emit({ name: 'restart', payload: { attempt, delayMs, error: down.error } });
    try {
      await this.#connect();
    } catch (error) {
      if (this.#lifetime.ended) throw error;
      this.#degrade(error as BackendError);
      throw hasNoEvents(error) ? new AbortError(error) : error;
    }
    if (down.tag === 'degraded') {
      const degradedMs = clock.monotonic() - down.since;
      const backend = this.backend?.name ?? 'poll';
      this.#receiver.emit({ name: 'recovered', payload: { backend, degradedMs } });
    }
    // Something may have changed in the meantime.
    this.#receiver.hint('restart');
  }

  /** @throws {BackendError} (rejects) */
  async #connect(): Promise<void> {
    const { backend: chosen } = this.#options;
    const backend = backendOf(chosen, this.#options);
    // Tracked, because otherwise nothing could release the result.
    this.#attempt = this.#lifetime.track(this.#subscribeTo(backend));
    try {
      await this.#attempt;
    } catch (error) {
      throw backendFailure(backend.name, this.#path, error);
    } finally {
      this.#attempt = undefined;
    }
  }

  async #subscribeTo(backend: WatchBackend): Promise<void> {
    const error = this.#eventlessError(backend);
    if (error) throw error;
    const { clock, persistent } = this.#options;
    const { name } = backend;
    let failure: { readonly error: unknown } | undefined;
    let subscribed: Subscribed | undefined = undefined;
    const sink = {
      hint: (hint?: Hint) => {
        const path = hint?.path === undefined ? undefined : knownPart(hint.path);
        this.#receiver.hint(name, path === hint?.path ? hint : { ...hint, path });
      },
      down: (error: unknown) => {
        failure ??= { error };
        const isUsed = this.#state.tag === 'up' && this.#state.subscribed === subscribed;
        if (isUsed) this.#lost(error);
      },
    };
    const watches = await backend.subscribe(sink, { persistent });
    try {
      this.#lifetime.throwIfEnded();
      await this.#listenFirst(watches);
      // The subscription may have ended before this continues.
      this.#lifetime.throwIfEnded();
      if (failure) throw failure.error;
    } catch (error) {
      this.#release(watches);
      throw error;
    }
    subscribed = { backend, watches };
    this.#stopPolling?.();
    this.#stopPolling = undefined;
    this.#state = { tag: 'up', subscribed, since: clock.monotonic() };
  }

  async #listenFirst(watches: WatchSubscription): Promise<void> {
    try {
      await this.#setDirectories(watches);
    } catch (error) {
      // The look that follows finds out where they are.
      if (!hasMoved(error)) throw error;
    }
  }

  /** A backend that hangs holds up neither looks nor `close()`. */
  #setDirectories(watches: WatchSubscription): readonly string[] | Promise<readonly string[]> {
    const opened = watches.setDirectories(this.directories);
    if (!(opened instanceof Promise)) return opened;
    const late = (): Error => new Error(`it has not answered for ${LONGEST_ANSWER_MS / 1_000} s`);
    return withDeadline(() => opened, { ...this.#deadline, signal: this.#lifetime.signal, late });
  }

  get #deadline(): { clock: Clock; timeoutMs: number; ref: boolean } {
    const { clock, persistent } = this.#options;
    return { clock, timeoutMs: LONGEST_ANSWER_MS, ref: persistent };
  }

  /** Why this backend would report no events for the target; undefined if it would. */
  #eventlessError({ name, needsKernelEvents = false }: WatchBackend): BackendError | undefined {
    if (!needsKernelEvents || this.eventless === undefined) return undefined;
    const message = `Cannot watch "${this.#path}": it is on ${this.eventless}, which reports no events; it is polled`;
    return new BackendError('ERR_BACKEND_NO_EVENTS', name, message);
  }

  /** Closes a subscription that is no longer needed. It must not throw, but a user's backend may. */
  #release(watches: WatchSubscription): void {
    const closing = Promise.resolve().then(() => watches.close());
    void this.#lifetime.track(waitAtMost(() => closing, this.#deadline));
  }
}
