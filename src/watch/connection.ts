/**
 * Keeps one backend subscribed.
 *
 * | state        | opened  | lost, or not available | no events there | events again | attempt succeeds | attempt fails |
 * |--------------|---------|------------------------|-----------------|--------------|------------------|---------------|
 * | `closed`     | → `up`  | → `degraded`           | → `suspended`   | –            | –                | –             |
 * | `up`         | –       | → `recovering`         | → `suspended`   | –            | –                | –             |
 * | `recovering` | –       | –                      | → `suspended`   | –            | → `up`           | → `degraded`  |
 * | `degraded`   | –       | –                      | → `suspended`   | –            | → `up`           | another later |
 * | `suspended`  | –       | –                      | –               | → `degraded` | –                | –             |
 *
 * That the file system reports no events is found by a check while it is `up`, and otherwise by the attempt to subscribe.
 * In every state but `closed` and `up` the target is polled. In `recovering` and `degraded` the backends are tried
 * again with growing delays. In `suspended` they are not: the target is on a file system without events, and retrying
 * is useless until the path leads elsewhere. `degraded` is emitted on the way into `degraded` or `suspended`,
 * `recovered` on the way from there to `up`.
 *
 * A backend that is not suited for the target has not failed: the others are tried at once, which is no restart, and
 * only their failure counts.
 */
import pRetry, { AbortError } from 'p-retry';

import { Backoff } from '../core/backoff.js';
import type { Clock } from '../core/clock.js';
import { hasMoved } from '../core/errno.js';
import type { BackendError } from '../core/backend-error.js';
import type { Random } from '../core/random.js';
import type { Scope } from '../core/scope.js';
import { sleep } from '../core/sleep.js';
import { Ticker, type TickerOptions, type Ticking } from '../core/ticker.js';
import type { Hint, WatchBackend, WatchedDirectory } from '../core/watch-backend.js';
import { backendFailure, hasNoEvents, isUnsuited } from './backends/backend-failure.js';
import type { BackendSink } from './backend-sink.js';
import {
  Subscriber,
  type Subscribed,
  type SubscriberListener,
  type SubscriptionOwner,
} from './subscriber.js';
import type { WatcherEvent } from './watcher-events.js';

/** The owner of a connection. */
export interface ConnectionOwner extends SubscriptionOwner {
  /** @param source the name of the backend, or `poll`. */
  hint(source: string, hint?: Hint): void;
  /**
   * Emits `restart`, `degraded` or `recovered`; `error` when no attempts are left, so that the target is polled from now
   * on.
   */
  report(event: WatcherEvent): void;
}

/** Options of a connection. */
interface ConnectionOptions {
  readonly persistent: boolean;
  readonly pollIntervalMs: number;
  readonly restartDelayMs: number;
  readonly maxRestartDelayMs: number;
  readonly maxRestarts: number;
  readonly clock: Clock;
  readonly random: Random;
}

type State =
  | { readonly tag: 'closed' }
  | ({ readonly tag: 'up'; readonly since: number } & Subscribed)
  | { readonly tag: 'recovering'; readonly error: BackendError }
  | { readonly tag: 'degraded' | 'suspended'; readonly error: BackendError; readonly since: number };

const CLOSED: State = { tag: 'closed' };

/** A connection to whichever backend works. */
export class BackendConnection implements SubscriberListener, Ticking {
  readonly #path: string;
  readonly #options: ConnectionOptions;
  readonly #owner: ConnectionOwner;
  readonly #scope: Scope;
  /** Since the last failure. */
  #backoff: Backoff | undefined;
  readonly #subscriber: Subscriber;
  #state: State = CLOSED;
  #restarts = 0;

  /** @param path the watched path, for messages. */
  constructor(path: string, options: ConnectionOptions, owner: ConnectionOwner, scope: Scope) {
    this.#path = path;
    this.#options = options;
    this.#owner = owner;
    this.#scope = scope;
    this.#subscriber = new Subscriber(path, options.persistent, owner, this, scope);
  }

  get state(): State['tag'] {
    return this.#state.tag;
  }

  /** The backend that is subscribed; undefined while the target is polled. */
  get backend(): WatchBackend | undefined {
    return this.#state.tag === 'up' ? this.#state.backend : undefined;
  }

  /** Why no backend is subscribed. */
  get error(): BackendError | undefined {
    return 'error' in this.#state ? this.#state.error : undefined;
  }

  /** The number of attempts to subscribe again. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Subscribes. Resolves when that has succeeded or failed once; a failure leads to polling, not to an error. */
  async open(): Promise<void> {
    try {
      await this.#subscriber.subscribe();
    } catch (error) {
      if (this.#scope.ended) return;
      this.#degrade(error as BackendError);
      this.#recover();
    }
  }

  /**
   * Watches these directories. Returns those that were not watched before, or may have moved meanwhile: they have
   * to be checked again. A failure is the loss of the backend.
   */
  async setDirectories(directories: readonly WatchedDirectory[]): Promise<readonly string[]> {
    if (this.#state.tag !== 'up') return [];
    const { subscription } = this.#state;
    try {
      return await subscription.setDirectories(directories);
    } catch (error) {
      const all = directories.map(({ path }) => path);
      if (hasMoved(error)) return all;
      if (isUnsuited(error)) return (await this.#useAnother(error)) ? all : [];
      this.#lost(error);
      return [];
    }
  }

  /** No backend reports events where the target is now. */
  suspend(error: BackendError): void {
    if (this.#state.tag !== 'up') return;
    this.#takeDown(error);
    this.#degrade(error);
    this.#poll();
  }

  /** The target is no longer where no backend reports events. */
  resume(): void {
    if (this.#state.tag !== 'suspended') return;
    this.#state = { ...this.#state, tag: 'degraded' };
    this.#backoff = undefined;
    this.#recover();
  }

  /** Resolves when no attempt is under way; the delay before the next one does not count. */
  async idle(): Promise<void> {
    await this.#subscriber.idle();
  }

  /** Ends it, once the scope has ended. */
  close(): void {
    this.#stopPolling();
    this.#subscriber.close();
    if (this.#state.tag === 'up') this.#subscriber.release(this.#state.subscription);
    this.#state = CLOSED;
  }

  up({ backend, subscription, sink }: Subscribed): void {
    this.#stopPolling();
    this.#state = { tag: 'up', backend, subscription, sink, since: this.#options.clock.monotonic() };
  }

  down(sink: BackendSink, error: unknown): void {
    if (this.#state.tag === 'up' && this.#state.sink === sink) this.#lost(error);
  }

  onTick(): void {
    this.#owner.hint('poll');
  }

  get #polling(): TickerOptions {
    const { clock, pollIntervalMs: intervalMs, persistent } = this.#options;
    return { clock, intervalMs, persistent };
  }

  #poll(): void {
    Ticker.start(this, this.#polling);
  }

  #stopPolling(): void {
    Ticker.stop(this, this.#polling);
  }

  #lost(error: unknown): void {
    if (this.#takeDown(error)) this.#recover();
  }

  /** False if it is not up. */
  #takeDown(error: unknown): boolean {
    if (this.#state.tag !== 'up' || this.#scope.ended) return false;
    const { backend, subscription, since } = this.#state;
    this.#state = { tag: 'recovering', error: backendFailure(backend.name, this.#path, error) };
    this.#subscriber.release(subscription);
    // Only a subscription that lived longer than the maximum delay has earned a quick restart.
    if (this.#options.clock.monotonic() - since > this.#options.maxRestartDelayMs) this.#backoff = undefined;
    return true;
  }

  /** Tries the other backends immediately. False if none is available: then it recovers as from any failure. */
  async #useAnother(unsuited: BackendError): Promise<boolean> {
    // Closed before the next one opens, which may need its watches.
    this.#takeDown(unsuited);
    this.#poll();
    try {
      await this.#subscriber.subscribe();
      return true;
    } catch (error) {
      if (this.#scope.ended) return false;
      this.#state = { tag: 'recovering', error: error as BackendError };
      this.#recover();
      return false;
    }
  }

  #degrade(error: BackendError): void {
    const { clock, pollIntervalMs } = this.#options;
    this.#state = { tag: hasNoEvents(error) ? 'suspended' : 'degraded', error, since: clock.monotonic() };
    this.#owner.report({ name: 'degraded', payload: { error, pollIntervalMs } });
  }

  /** Polls, and unless it is suspended tries to subscribe again. */
  #recover(): void {
    const down = this.#state;
    this.#poll();
    if (down.tag !== 'recovering' && down.tag !== 'degraded') return;
    const { maxRestarts } = this.#options;
    const { signal } = this.#scope;
    const attempts =
      maxRestarts === 0
        ? Promise.reject(down.error)
        : pRetry((attempt) => this.#attempt(attempt), {
            retries: maxRestarts - 1,
            // The delays are taken from the clock, with jitter at the maximum, too.
            minTimeout: 0,
            maxTimeout: 0,
            signal,
          });
    const recovery = attempts.catch((error: unknown) => {
      if (!signal.aborted && this.#state.tag !== 'suspended')
        this.#owner.report({ name: 'error', payload: error as Error });
    });
    void this.#scope.track(recovery);
  }

  async #attempt(attempt: number): Promise<void> {
    const { clock, persistent, random, restartDelayMs, maxRestartDelayMs: maxDelayMs } = this.#options;
    const down = this.#state;
    if (down.tag !== 'recovering' && down.tag !== 'degraded') return;
    this.#backoff ??= new Backoff({ firstDelayMs: restartDelayMs, maxDelayMs, random });
    const delayMs = this.#backoff.next();
    await sleep(clock, delayMs, { signal: this.#scope.signal, ref: persistent });
    this.#restarts += 1;
    this.#owner.report({ name: 'restart', payload: { attempt, delayMs, error: down.error } });
    try {
      await this.#subscriber.subscribe();
    } catch (error) {
      if (this.#scope.ended) throw error;
      if (down.tag === 'recovering') this.#degrade(error as BackendError);
      else if (hasNoEvents(error)) this.#state = { ...down, tag: 'suspended', error };
      throw hasNoEvents(error) ? new AbortError(error) : error;
    }
    if (down.tag === 'degraded') {
      const degradedMs = clock.monotonic() - down.since;
      this.#owner.report({
        name: 'recovered',
        payload: { backend: this.backend?.name ?? 'poll', degradedMs },
      });
    }
    // Something may have changed in the meantime.
    this.#owner.hint('restart');
  }
}
