/**
 * What every machine of the library has in common: events that cannot hurt it, and an orderly start and end.
 *
 * The life of a machine:
 *
 * | state      | `start()`            | `open()` succeeds     | fails                | `close()`, the signal aborts |
 * |------------|----------------------|-----------------------|----------------------|------------------------------|
 * | `idle`     | → `starting`, opens  | –                     | –                    | → `closed`                   |
 * | `starting` | same promise         | → `running`, runs     | → `idle`, rejects    | → `closed`, ends             |
 * | `running`  | same promise         | –                     | the same, of `run()` | → `closed`, ends             |
 * | `closed`   | rejects              | –                     | –                    | same promise                 |
 *
 * Whoever waits for `start()` is rejected at the end, not when `open()` or `run()` has come to something. Before the
 * start the signal is only asked, and `end()` waits for the next `start()` or `close()`: who waits for the end by then
 * heeds the signal itself.
 */
import { EventEmitter } from 'eventemitter3';

import { ListenerError } from './errors.js';

type Listener = (...args: unknown[]) => unknown;

/**
 * An emitter whose listeners hurt neither the emitter nor each other: what one throws, or rejects with, is
 * reported as a `ListenerError` on `error`. An `error` that nobody hears becomes a process warning.
 */
export class IsolatedEmitter<Events extends EventEmitter.ValidEventTypes> extends EventEmitter<Events> {
  override emit<T extends EventEmitter.EventNames<Events>>(
    event: T,
    ...args: Parameters<EventEmitter.EventListener<Events, T>>
  ): boolean {
    const listeners = this.listeners(event) as Listener[];
    for (const listener of listeners) {
      // Removes it only if it was added with once().
      this.removeListener(event, listener as EventEmitter.EventListener<Events, T>, undefined, true);
      try {
        const answer = listener.apply(this, args);
        if (answer instanceof Promise) answer.catch((error: unknown) => this.#report(event, error));
      } catch (error) {
        this.#report(event, error);
      }
    }
    if (listeners.length === 0 && event === 'error') process.emitWarning(args[0] as Error);
    return listeners.length > 0;
  }

  #report(event: EventEmitter.EventNames<Events>, cause: unknown): void {
    const error = new ListenerError(String(event), cause);
    // A failing listener of `error` must not be told of its own failure, for ever.
    if (event === 'error') process.emitWarning(error);
    else (this as unknown as EventEmitter<{ error: [Error] }>).emit('error', error);
  }
}

/** The time between the start and the end of a machine: one signal, and the work in flight. */
export class Scope {
  readonly #controller = new AbortController();
  readonly #work = new Set<Promise<unknown>>();

  /** Aborts when the scope ends. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get ended(): boolean {
    return this.signal.aborted;
  }

  /** Remembers work that the end has to wait for. What it rejects with is the caller's to handle. */
  track<T>(work: Promise<T>): Promise<T> {
    this.#work.add(work);
    const forget = (): void => void this.#work.delete(work);
    work.then(forget, forget);
    return work;
  }

  /** What the work comes to; rejects as soon as the scope ends, for the work may hang. */
  untilEnd<T>(work: T | Promise<T>): Promise<T> {
    const { signal } = this;
    return new Promise<T>((resolve, reject) => {
      const onEnd = (): void => reject(signal.reason as Error);
      if (signal.aborted) onEnd();
      signal.addEventListener('abort', onEnd, { once: true });
      const forget = (): void => signal.removeEventListener('abort', onEnd);
      void Promise.resolve(work).then(resolve, reject).finally(forget);
    });
  }

  /**
   * Ends the scope and resolves when no tracked work is left, that which the end itself makes included. Never
   * rejects.
   */
  async end(reason: unknown): Promise<void> {
    this.#controller.abort(reason);
    do await Promise.allSettled(this.#work);
    while (this.#work.size > 0);
  }
}

/** What a machine does at the turns of its life. */
export interface LifecycleOptions<T> {
  /** Closes the machine when it aborts; listened to only between start and end. */
  readonly signal: AbortSignal | undefined;
  /**
   * Gets what it needs. When this rejects nothing is to be left of it. It may come to something after the end: then
   * it gives that back itself.
   */
  readonly open: () => Promise<unknown>;
  /**
   * Begins its work, now that it is running; what `start()` resolves to. When this rejects nothing is to be left of
   * it, and of what `open()` got: another start opens anew.
   */
  readonly run: () => T | Promise<T>;
  /** Gives back everything. Called once, at once, when the scope has just ended; must not reject. */
  readonly end: () => unknown;
  /** What is thrown at whoever comes after the end. */
  readonly over: () => Error;
}

/** The start and the end of a machine: the table at the head of this file. */
export class Lifecycle<T = void> {
  /** Ends when the machine is closed, before `end()`. */
  readonly scope = new Scope();
  readonly #options: LifecycleOptions<T>;
  readonly #onAbort = (): void => void this.close();
  #state: 'idle' | 'starting' | 'running' | 'closed' = 'idle';
  #started: Promise<T> | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: LifecycleOptions<T>) {
    this.#options = options;
  }

  get state(): 'idle' | 'starting' | 'running' | 'closed' {
    return this.#options.signal?.aborted ? 'closed' : this.#state;
  }

  /** Resolves when the machine runs; the same promise for all who ask, until that fails. */
  start(): Promise<T> {
    if (this.#options.signal?.aborted) void this.close();
    if (this.state === 'closed') return Promise.reject(this.#options.over());
    if (this.#started) return this.#started;
    let follow!: (start: Promise<T>) => void;
    // Set before `open()`, within which somebody may call start(), too.
    const started = (this.#started = new Promise((resolve) => (follow = resolve)));
    follow(this.#start());
    return started;
  }

  /** Ends it. Resolves when nothing is left, and never rejects; the same promise for all who ask. */
  close(): Promise<void> {
    if (!this.#closed) {
      let follow!: (end: Promise<void>) => void;
      // Set before anybody hears of the end: they may call close(), too.
      this.#closed = new Promise((resolve) => (follow = resolve));
      follow(this.#end());
    }
    return this.#closed;
  }

  throwIfClosed(): void {
    if (this.state === 'closed') throw this.#options.over();
  }

  async #start(): Promise<T> {
    const { signal, open, run } = this.#options;
    this.#state = 'starting';
    signal?.addEventListener('abort', this.#onAbort, { once: true });
    try {
      await this.scope.untilEnd(open());
      this.throwIfClosed();
      this.#state = 'running';
      const result = await this.scope.untilEnd(run());
      this.throwIfClosed();
      return result;
    } catch (error) {
      this.throwIfClosed();
      this.#state = 'idle';
      this.#started = undefined;
      signal?.removeEventListener('abort', this.#onAbort);
      throw error;
    }
  }

  async #end(): Promise<void> {
    const { signal, end, over } = this.#options;
    this.#state = 'closed';
    signal?.removeEventListener('abort', this.#onAbort);
    await Promise.all([this.scope.end(over()), end()]);
  }
}
