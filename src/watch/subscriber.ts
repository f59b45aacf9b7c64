import type { BackendError } from '../core/backend-error.js';
import type { Scope } from '../core/scope.js';
import type { Hint, WatchBackend, WatchSubscription } from '../core/watch-backend.js';
import { BackendSink } from './backend-sink.js';
import { backendFailure, hasNoEvents, isUnsuited } from './backends/backend-failure.js';

/** A backend that is subscribed to, with its directories set. */
export interface Subscribed {
  readonly backend: WatchBackend;
  readonly subscription: WatchSubscription;
  readonly sink: BackendSink;
}

/** What a subscription needs from the watcher. */
export interface SubscriptionOwner {
  /** The backends to try, in order of preference. */
  backends(): Iterable<WatchBackend>;
  /** @param source the name of the backend. */
  hint(source: string, hint?: Hint): void;
  /**
   * Sets the directories of a new subscription, until they are stable.
   * @throws when they cannot be watched: then the subscription is useless.
   */
  arm(subscription: WatchSubscription, backend: WatchBackend): Promise<void>;
}

/** Receives what becomes of the subscriptions. */
export interface SubscriberListener {
  /** A subscription is armed. */
  up(subscribed: Subscribed): void;
  /** The subscription that reports to this sink has ended. */
  down(sink: BackendSink, error: unknown): void;
}

/** Subscribes to the first backend that is available, and arms it. */
export class Subscriber {
  readonly #path: string;
  readonly #persistent: boolean;
  readonly #owner: SubscriptionOwner;
  readonly #listener: SubscriberListener;
  readonly #scope: Scope;
  #attempt: Promise<void> | undefined;
  /** Subscribed to, but not armed yet. */
  #arming: WatchSubscription | undefined;

  /**
   * @param path the watched path, for messages.
   * @param persistent whether subscriptions keep the process alive.
   */
  constructor(
    path: string,
    persistent: boolean,
    owner: SubscriptionOwner,
    listener: SubscriberListener,
    scope: Scope,
  ) {
    this.#path = path;
    this.#persistent = persistent;
    this.#owner = owner;
    this.#listener = listener;
    this.#scope = scope;
  }

  /** Rejects with a `BackendError` if no backend is available, and when the scope ends. */
  async subscribe(): Promise<void> {
    this.#attempt = this.#subscribeToAny();
    try {
      await this.#attempt;
    } finally {
      this.#attempt = undefined;
    }
  }

  /** Resolves when no attempt is in progress. */
  async idle(): Promise<void> {
    while (this.#attempt) await this.#attempt.catch(() => undefined);
  }

  /** Closes a subscription. */
  release(subscription: WatchSubscription): void {
    // It must not throw, but a user's backend may; the subscription is no longer needed.
    const closing = Promise.resolve()
      .then(() => subscription.close())
      .catch(() => undefined);
    void this.#scope.track(closing);
  }

  /** Releases a subscription that is being armed immediately, since arming may hang. */
  close(): void {
    if (this.#arming) this.release(this.#arming);
    this.#arming = undefined;
  }

  /**
   * Tries the backends in order. Throws an error that is the same for all of them (a limit of the kernel, a file
   * system without events) immediately, otherwise the failure of the first one that is suited.
   */
  async #subscribeToAny(): Promise<void> {
    let first: BackendError | undefined;
    for (const backend of this.#owner.backends()) {
      try {
        await this.#subscribeTo(backend);
        return;
      } catch (error) {
        const failure = backendFailure(backend.name, this.#path, error);
        if (failure.sysctl !== undefined || hasNoEvents(failure)) throw failure;
        if (!first || isUnsuited(first)) first = failure;
        if (this.#scope.ended) break;
      }
    }
    if (first) throw first;
  }

  async #subscribeTo(backend: WatchBackend): Promise<void> {
    const sink = new BackendSink(backend.name, this.#owner, this.#listener);
    // Tracked: otherwise nobody could release the result.
    const subscription = await this.#scope.track(this.#granted(backend, sink));
    try {
      this.#scope.throwIfEnded();
      // Not tracked: on a dead server it never ends.
      await this.#scope.untilEnd(this.#owner.arm(subscription, backend));
      this.#scope.throwIfEnded();
      sink.throwIfDown();
    } catch (error) {
      this.close();
      throw error;
    }
    this.#arming = undefined;
    this.#listener.up({ backend, subscription, sink });
  }

  /** A subscription that is yet to be armed; released already when the scope has ended. */
  async #granted(backend: WatchBackend, sink: BackendSink): Promise<WatchSubscription> {
    const subscription = await backend.subscribe(sink, { persistent: this.#persistent });
    this.#arming = subscription;
    if (this.#scope.ended) this.close();
    return subscription;
  }
}
