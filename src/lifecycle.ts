/** What every machine of the library has in common: events that cannot hurt it, and an orderly end. */
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

  /** Ends the scope and resolves when no tracked work is left. Never rejects. */
  async end(reason: unknown): Promise<void> {
    this.#controller.abort(reason);
    while (this.#work.size > 0) await Promise.allSettled(this.#work);
  }
}
