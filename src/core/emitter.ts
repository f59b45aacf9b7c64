import { EventEmitter } from 'eventemitter3';

import { ListenerError } from './errors.js';

type Listener = (this: unknown, ...args: unknown[]) => unknown;
type Names<Events extends object> = EventEmitter.EventNames<Events>;
type ListenerFor<Events extends object, E extends Names<Events>> = EventEmitter.EventListener<Events, E>;

/** A listener as eventemitter3 keeps it. */
interface Registered {
  readonly fn: Listener;
  readonly context: unknown;
  readonly once: boolean;
}

/**
 * An emitter whose listeners cannot affect it or each other. When a listener throws or rejects, a `ListenerError` is
 * emitted on `error`; an `error` without a listener becomes a process warning.
 */
export class Emitter<Events extends object> extends EventEmitter<Events> {
  /** Removed from the error of a listener that failed. */
  protected get secrets(): readonly string[] {
    return [];
  }

  // `once()` and `on()` of `node:events` require the methods below.

  /** Adds the listener before all others of the event. */
  prependListener<E extends Names<Events>>(event: E, fn: ListenerFor<Events, E>): this {
    return this.on(event, fn).#moveLastToFront(event);
  }

  prependOnceListener<E extends Names<Events>>(event: E, fn: ListenerFor<Events, E>): this {
    return this.once(event, fn).#moveLastToFront(event);
  }

  rawListeners<E extends Names<Events>>(event: E): ListenerFor<Events, E>[] {
    return this.listeners(event);
  }

  /** There is no limit on the number of listeners. */
  getMaxListeners(): number {
    return Infinity;
  }

  /** Has no effect: there is no limit. */
  setMaxListeners(_count: number): this {
    return this;
  }

  /** Calls the listeners that were registered when the event was emitted, as Node.js does. */
  override emit<E extends Names<Events>>(event: E, ...args: EventEmitter.EventArgs<Events, E>): boolean {
    const registered = this.#registered(event);
    if (registered === undefined) {
      if (event === 'error') process.emitWarning((args as readonly unknown[])[0] as Error);
      return false;
    }
    if (!Array.isArray(registered)) this.#call(event, registered, args);
    else for (const each of [...registered]) this.#call(event, each, args);
    return true;
  }

  #call(event: Names<Events>, { fn, context, once }: Registered, args: unknown[]): void {
    if (once) this.removeListener(event, fn as ListenerFor<Events, typeof event>, undefined, true);
    try {
      const result = fn.apply(context, args);
      if (result instanceof Promise) result.catch((error: unknown) => this.#failed(event, error));
    } catch (error) {
      this.#failed(event, error);
    }
  }

  #failed(event: PropertyKey, thrown: unknown): void {
    const error = new ListenerError(String(event), thrown, this.secrets);
    // A failing listener of `error` must not receive its own failure: that would never end.
    if (event === 'error') process.emitWarning(error);
    else (this as unknown as Emitter<{ error: [error: Error] }>).emit('error', error);
  }

  #moveLastToFront(event: PropertyKey): this {
    const registered = this.#registered(event);
    if (Array.isArray(registered)) registered.unshift(...registered.splice(-1));
    return this;
  }

  /** eventemitter3 keeps the listeners of an event here: one, or an array of them. */
  #registered(event: PropertyKey): Registered | Registered[] | undefined {
    const { _events } = this as unknown as {
      readonly _events: Record<PropertyKey, Registered | Registered[] | undefined>;
    };
    return _events[event];
  }
}
