import { EventEmitter } from 'eventemitter3';

import { ListenerError } from './errors.js';

type Listener = (this: unknown, ...args: unknown[]) => unknown;
type Names<Events extends object> = EventEmitter.EventNames<Events>;
type ListenerFor<Events extends object, E extends Names<Events>> = EventEmitter.EventListener<Events, E>;

/**
 * An emitter whose listeners cannot affect it or each other. When a listener throws or rejects, a `ListenerError` is
 * emitted on `error`; an `error` without a listener becomes a process warning.
 */
export class Emitter<Events extends object> extends EventEmitter<Events> {
  /** The registered form of each listener, by listener and event. */
  readonly #isolated = new WeakMap<Listener, Map<PropertyKey, Listener>>();

  /** Removed from the error of a listener that failed. */
  protected get secrets(): readonly string[] {
    return [];
  }

  override on<E extends Names<Events>>(event: E, fn: ListenerFor<Events, E>, context?: unknown): this {
    return super.on(event, this.#isolate(event, fn), context);
  }

  override addListener<E extends Names<Events>>(
    event: E,
    fn: ListenerFor<Events, E>,
    context?: unknown,
  ): this {
    return this.on(event, fn, context);
  }

  override once<E extends Names<Events>>(event: E, fn: ListenerFor<Events, E>, context?: unknown): this {
    return super.once(event, this.#isolate(event, fn), context);
  }

  override removeListener<E extends Names<Events>>(
    event: E,
    fn?: ListenerFor<Events, E>,
    context?: unknown,
    once?: boolean,
  ): this {
    const isolated = fn && this.#isolated.get(fn as Listener)?.get(event);
    return super.removeListener(event, (isolated as ListenerFor<Events, E> | undefined) ?? fn, context, once);
  }

  override off<E extends Names<Events>>(
    event: E,
    fn?: ListenerFor<Events, E>,
    context?: unknown,
    once?: boolean,
  ): this {
    return this.removeListener(event, fn, context, once);
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

  override emit<E extends Names<Events>>(event: E, ...args: EventEmitter.EventArgs<Events, E>): boolean {
    const isHeard = super.emit(event, ...args);
    if (!isHeard && event === 'error') process.emitWarning((args as readonly unknown[])[0] as Error);
    return isHeard;
  }

  #moveLastToFront(event: PropertyKey): this {
    // eventemitter3 keeps the listeners of an event here: one, or an array of them.
    const { _events } = this as unknown as { readonly _events: Record<PropertyKey, unknown> };
    const listeners = _events[event];
    if (Array.isArray(listeners)) listeners.unshift(listeners.pop());
    return this;
  }

  #isolate<E extends Names<Events>>(event: E, fn: ListenerFor<Events, E>): ListenerFor<Events, E> {
    if (typeof fn !== 'function') throw new TypeError('The listener must be a function');
    const listener = fn as Listener;
    const byEvent = this.#isolated.get(listener) ?? new Map<PropertyKey, Listener>();
    this.#isolated.set(listener, byEvent);
    const report = (thrown: unknown): void => this.#report(String(event), thrown);
    const isolated: Listener =
      byEvent.get(event) ??
      function (this: unknown, ...args: unknown[]): void {
        try {
          const result = listener.apply(this, args);
          if (result instanceof Promise) result.catch(report);
        } catch (error) {
          report(error);
        }
      };
    byEvent.set(event, isolated);
    return isolated as ListenerFor<Events, E>;
  }

  #report(event: string, thrown: unknown): void {
    const error = new ListenerError(event, thrown, this.secrets);
    // A failing listener of `error` must not receive its own failure: that would never end.
    if (event === 'error') process.emitWarning(error);
    else (this as unknown as Emitter<{ error: [error: Error] }>).emit('error', error);
  }
}
