/**
 * Keeps one backend subscribed.
 *
 * | state        | subscription opens  | backend down / cannot be had | attempt succeeds | attempt fails            |
 * |--------------|---------------------|------------------------------|------------------|--------------------------|
 * | `closed`     | → `up`              | → `degraded`                 | –                | –                        |
 * | `up`         | –                   | → `recovering`               | –                | –                        |
 * | `recovering` | –                   | –                            | → `up`           | → `degraded`, say so     |
 * | `degraded`   | –                   | –                            | → `up`, say so   | stay, next attempt later |
 *
 * In `recovering` and `degraded` it polls, and tries again with growing delays. A backend that says that it is not
 * suited has not failed: the others are tried at once, which is no restart, and only their failure counts.
 */
import pRetry from 'p-retry';

import { backendFailure } from './backends/backend-failure.js';
import { Backoff } from '../core/backoff.js';
import { BackendError, hasMoved } from '../core/errors.js';
import type { Scope } from '../core/scope.js';
import type { Clock, Scheduled } from '../core/clock.js';
import type { HintSink, WatchBackend, WatchedDirectory, WatchSubscription } from '../core/watch-backend.js';
import type { Random } from '../core/random.js';
import { sleep } from '../core/sleep.js';

/** What the owner of a connection does for it, and hears from it. */
export interface ConnectionOwner {
  /** Check again; `source` names the backend, or `poll`. `written`, `path`: see `HintSink.hint`. */
  hint(source: string, written?: string, path?: string): void;
  /**
   * Aims a new subscription at the right directories until they are stable.
   * @throws when they cannot be watched: then the subscription is of no use.
   */
  arm(subscription: WatchSubscription): Promise<void>;
  /** An attempt to come back begins. */
  restarting(restart: Restart): void;
  /** It came back: look, since something may have happened while nobody listened. */
  restarted(): void;
  degraded(degradation: Degradation): void;
  recovered(recovery: Recovery): void;
  /** The attempts allowed are used up; it polls from now on. */
  gaveUp(cause: BackendError): void;
}

/** An attempt to subscribe again. */
export interface Restart {
  /** 1 for the first since the backend went down. */
  readonly attempt: number;
  /** How long it was waited for, ms. */
  readonly delayMs: number;
  /** Why the backend is down. */
  readonly cause: BackendError;
}

/** Native watching cannot be had; the target is polled. */
export interface Degradation {
  /** Why. For the two inotify limits it carries the `sysctl` to raise. */
  readonly cause: BackendError;
  /** How often the target is looked at meanwhile, ms. */
  readonly pollIntervalMs: number;
}

/** Native watching is back. */
export interface Recovery {
  /** The backend that serves now. */
  readonly backend: string;
  /** How long it was polled, ms. */
  readonly degradedMs: number;
}

/** How a connection behaves. */
export interface ConnectionOptions {
  /** What is watched, for messages. */
  readonly path: string;
  /** In order of preference. */
  readonly backends: readonly WatchBackend[];
  readonly pollIntervalMs: number;
  readonly restartDelayMs: number;
  readonly maxRestartDelayMs: number;
  readonly maxRestarts: number;
  readonly persistent: boolean;
  readonly clock: Clock;
  readonly random: Random;
}

type State =
  | { readonly tag: 'closed' }
  | {
      readonly tag: 'up';
      readonly backend: string;
      readonly reportsWrites: boolean;
      readonly sink: HintSink;
      readonly subscription: WatchSubscription;
      readonly since: number;
    }
  | { readonly tag: 'recovering'; readonly cause: BackendError }
  | { readonly tag: 'degraded'; readonly cause: BackendError; readonly since: number };

/** A connection to whichever backend works. */
export class BackendConnection {
  readonly #options: ConnectionOptions;
  readonly #owner: ConnectionOwner;
  readonly #scope: Scope;
  readonly #backoff: Backoff;
  #state: State = { tag: 'closed' };
  #polling: Scheduled | undefined;
  #subscribing: Promise<void> | undefined;
  /** Subscribed, and not up yet. */
  #arming: WatchSubscription | undefined;
  #restarts = 0;

  constructor(options: ConnectionOptions, owner: ConnectionOwner, scope: Scope) {
    this.#options = options;
    this.#owner = owner;
    this.#scope = scope;
    const { restartDelayMs, maxRestartDelayMs, random } = options;
    this.#backoff = new Backoff({ firstDelayMs: restartDelayMs, maxDelayMs: maxRestartDelayMs, random });
  }

  get state(): State['tag'] {
    return this.#state.tag;
  }

  /** The backend that serves; `poll` while none does. */
  get backend(): string {
    return this.#state.tag === 'up' ? this.#state.backend : 'poll';
  }

  /** Whether its hints say which entries were written in place. */
  get reportsWrites(): boolean {
    return this.#state.tag === 'up' && this.#state.reportsWrites;
  }

  /** Why it is not up. */
  get cause(): BackendError | undefined {
    return 'cause' in this.#state ? this.#state.cause : undefined;
  }

  /** How many attempts to come back were made. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Subscribes. Resolves when that has succeeded or failed once; a failure leads to polling, not to an error. */
  async open(): Promise<void> {
    try {
      await this.#subscribe();
    } catch (error) {
      if (this.#scope.ended) return;
      this.#degrade(error as BackendError);
      this.#recover(error as BackendError);
    }
  }

  /**
   * Watches these directories. Returns those that were newly watched, or may have moved meanwhile: look again.
   * A failure takes the connection down.
   */
  async setDirectories(directories: readonly WatchedDirectory[]): Promise<readonly string[]> {
    if (this.#state.tag !== 'up') return [];
    const { subscription } = this.#state;
    try {
      return await subscription.setDirectories(directories);
    } catch (error) {
      const all = directories.map(({ path }) => path);
      if (hasMoved(error)) return all;
      if (isUnsuited(error)) return (await this.#handOver(error)) ? all : [];
      this.fail(error);
      return [];
    }
  }

  /** Takes it down for a reason that it, or the owner, found. */
  fail(error: unknown): void {
    const cause = this.#takeDown(error);
    if (cause) this.#recover(cause);
  }

  /** Undefined when it is not up. */
  #takeDown(error: unknown): BackendError | undefined {
    if (this.#state.tag !== 'up' || this.#scope.ended) return undefined;
    const { backend, subscription, since } = this.#state;
    const cause = backendFailure(backend, this.#options.path, error);
    this.#state = { tag: 'recovering', cause };
    this.#release(subscription);
    // Only one that lived longer than the longest delay has earned a quick restart.
    if (this.#options.clock.monotonic() - since > this.#options.maxRestartDelayMs) this.#backoff.reset();
    return cause;
  }

  /** Leaves it to the other backends at once. False when none can be had: then it recovers as from any failure. */
  async #handOver(unsuited: BackendError): Promise<boolean> {
    // Closed before the next one opens, which may need its watches.
    this.#takeDown(unsuited);
    this.#poll();
    try {
      await this.#subscribe();
      return true;
    } catch (error) {
      if (this.#scope.ended) return false;
      const cause = error as BackendError;
      this.#state = { tag: 'recovering', cause };
      this.#recover(cause);
      return false;
    }
  }

  /** Resolves when no attempt is under way; the wait for the next one does not count. */
  async idle(): Promise<void> {
    while (this.#subscribing) await this.#subscribing.catch(() => undefined);
  }

  /**
   * Ends it; what is still under way ends with the scope. What is being armed is released at once: its arming may
   * hang on a dead server.
   */
  close(): void {
    this.#stopPolling();
    this.#disarm();
    if (this.#state.tag === 'up') this.#release(this.#state.subscription);
    this.#state = { tag: 'closed' };
  }

  async #subscribe(): Promise<void> {
    this.#subscribing = this.#subscribeToAny();
    try {
      await this.#subscribing;
    } finally {
      this.#subscribing = undefined;
    }
  }

  /**
   * Tries the backends in order. Throws a limit of the kernel or else the failure of the first that is suited: that is
   * to be cured.
   */
  async #subscribeToAny(): Promise<void> {
    const { backends, path } = this.#options;
    let first: BackendError | undefined;
    for (const backend of backends) {
      try {
        await this.#subscribeTo(backend);
        return;
      } catch (error) {
        const failure = backendFailure(backend.name, path, error);
        // The limit is the same for the next one.
        if (failure.sysctl !== undefined) throw failure;
        if (!first || isUnsuited(first)) first = failure;
        if (this.#scope.ended) break;
      }
    }
    if (first) throw first;
  }

  async #subscribeTo(backend: WatchBackend): Promise<void> {
    const { clock } = this.#options;
    let early: { readonly error: unknown } | undefined;
    const sink: HintSink = {
      hint: (written, path) => this.#owner.hint(backend.name, written, path),
      down: (error) => {
        if (this.#state.tag === 'up' && this.#state.sink === sink) this.fail(error);
        else early ??= { error };
      },
    };
    // Tracked: nobody else could give back what comes of it.
    const subscription = await this.#scope.track(this.#granted(backend, sink));
    try {
      this.#scope.signal.throwIfAborted();
      await this.#owner.arm(subscription);
      this.#scope.signal.throwIfAborted();
      if (early) throw early.error;
    } catch (error) {
      this.#disarm();
      throw error;
    }
    this.#arming = undefined;
    this.#stopPolling();
    const { name, reportsWrites = false } = backend;
    this.#state = { tag: 'up', backend: name, reportsWrites, sink, subscription, since: clock.monotonic() };
  }

  /** A subscription, from now on being armed; released already when the scope has ended. */
  async #granted(backend: WatchBackend, sink: HintSink): Promise<WatchSubscription> {
    const { persistent } = this.#options;
    const subscription = await backend.subscribe(sink, { persistent });
    this.#arming = subscription;
    if (this.#scope.ended) this.#disarm();
    return subscription;
  }

  #disarm(): void {
    if (this.#arming) this.#release(this.#arming);
    this.#arming = undefined;
  }

  #degrade(cause: BackendError): void {
    this.#state = { tag: 'degraded', cause, since: this.#options.clock.monotonic() };
    this.#owner.degraded({ cause, pollIntervalMs: this.#options.pollIntervalMs });
  }

  /** Comes back, however long it takes; the clock stands in for the backend meanwhile. */
  #recover(cause: BackendError): void {
    const { maxRestarts } = this.#options;
    const { signal } = this.#scope;
    this.#poll();
    const attempts =
      maxRestarts === 0
        ? Promise.reject(cause)
        : pRetry((attempt) => this.#attempt(attempt), {
            retries: maxRestarts - 1,
            // The waiting is ours: through the clock, and with jitter at the limit too.
            minTimeout: 0,
            maxTimeout: 0,
            signal,
          });
    const recovery = attempts.catch((error: unknown) => {
      if (!signal.aborted) this.#owner.gaveUp(error as BackendError);
    });
    void this.#scope.track(recovery);
  }

  async #attempt(attempt: number): Promise<void> {
    const { clock, persistent } = this.#options;
    const down = this.#state;
    if (down.tag !== 'recovering' && down.tag !== 'degraded') return;
    const delayMs = this.#backoff.next();
    await sleep(clock, delayMs, { signal: this.#scope.signal, ref: persistent });
    this.#restarts += 1;
    this.#owner.restarting({ attempt, delayMs, cause: down.cause });
    try {
      await this.#subscribe();
    } catch (error) {
      if (!this.#scope.ended && down.tag === 'recovering') this.#degrade(error as BackendError);
      throw error;
    }
    if (down.tag === 'degraded') {
      this.#owner.recovered({ backend: this.backend, degradedMs: clock.monotonic() - down.since });
    }
    this.#owner.restarted();
  }

  #poll(): void {
    const { clock, pollIntervalMs, persistent } = this.#options;
    this.#polling ??= clock.schedule(
      () => {
        this.#polling = undefined;
        this.#poll();
        this.#owner.hint('poll');
      },
      pollIntervalMs,
      { ref: persistent },
    );
  }

  #stopPolling(): void {
    this.#polling?.cancel();
    this.#polling = undefined;
  }

  #release(subscription: WatchSubscription): void {
    // It must not throw; a user's own backend may, and it is of no use any more.
    const closing = Promise.resolve()
      .then(() => subscription.close())
      .catch(() => undefined);
    void this.#scope.track(closing);
  }
}

function isUnsuited(error: unknown): error is BackendError {
  return error instanceof BackendError && error.code === 'ERR_BACKEND_UNSUITED';
}
