import { EventEmitter } from 'eventemitter3';

import { ListenerError } from './errors.js';

type Names<Events extends object> = EventEmitter.EventNames<Events>;
type ListenerFor<Events extends object, E extends Names<Events>> = EventEmitter.EventListener<Events, E>;

/** Node.js prints `detail` below the warning: there, the place in the application's own code. */
function warnOf(error: Error): void {
  const { cause } = error;
  const place = cause instanceof Error ? { detail: cause.stack } : {};
  process.emitWarning(Object.assign(error, place));
}

/** Stands for a listener in eventemitter3; never throws. */
type Guard = (() => void) & { readonly listener: unknown; readonly context: unknown; readonly once: boolean };

/**
 * An emitter whose listeners cannot affect it or each other. When a listener throws or rejects, a `ListenerError` is
 * emitted on `error`; an `error` without a listener becomes a process warning. As in Node.js, an event is passed to the
 * listeners that were registered when it was emitted.
 */
export class Emitter<Events extends object> extends EventEmitter<Events> {
  /** The secrets to remove from the error of a listener that failed. */
  protected get secrets(): readonly string[] {
    return [];
  }

  override on<E extends Names<Events>>(event: E, fn: ListenerFor<Events, E>, context?: unknown): this {
    return super.on(event, this.#guard(event, fn, context, false));
  }

  override once<E extends Names<Events>>(event: E, fn: ListenerFor<Events, E>, context?: unknown): this {
    return super.on(event, this.#guard(event, fn, context, true));
  }

  override off(event: Names<Events>, ...which: [fn?: unknown, context?: unknown, once?: boolean]): this {
    const [fn, context, once] = which;
    for (const guard of super.listeners(event) as (ListenerFor<Events, typeof event> & Guard)[]) {
      const isMeant = (!fn || guard.listener === fn) && (!context || guard.context === context);
      if (isMeant && (!once || guard.once)) super.off(event, guard);
    }
    return this;
  }

  override listeners<E extends Names<Events>>(event: E): ListenerFor<Events, E>[] {
    return super.listeners(event).map((guard) => (guard as unknown as Guard).listener as typeof guard);
  }

  // `once()` and `on()` of `node:events` require the methods below.

  /** Adds the listener before all others of the event. */
  prependListener<E extends Names<Events>>(event: E, fn: ListenerFor<Events, E>): this {
    return this.#prepend(event, this.#guard(event, fn, this, false));
  }

  prependOnceListener<E extends Names<Events>>(event: E, fn: ListenerFor<Events, E>): this {
    return this.#prepend(event, this.#guard(event, fn, this, true));
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
    if (!isHeard && event === 'error') warnOf((args as readonly unknown[])[0] as Error);
    return isHeard;
  }

  #guard<E extends Names<Events>>(event: E, listener: ListenerFor<Events, E>, given: unknown, once: boolean) {
    if (typeof listener !== 'function') throw new TypeError('The listener must be a function');
    const context = given ?? this;
    const guard = (...args: unknown[]): void => {
      if (once) super.off(event, guarded);
      try {
        const result: unknown = Reflect.apply(listener, context, args);
        if (result instanceof Promise) result.catch((error: unknown) => this.#failed(event, error));
      } catch (error) {
        this.#failed(event, error);
      }
    };
    const guarded = Object.assign(guard, { listener, context, once }) as Guard & ListenerFor<Events, E>;
    return guarded;
  }

  #prepend<E extends Names<Events>>(event: E, guard: ListenerFor<Events, E>): this {
    const after = super.listeners(event);
    this.removeAllListeners(event);
    for (const next of [guard, ...after]) super.on(event, next);
    return this;
  }

  #failed(event: PropertyKey, thrown: unknown): void {
    const error = new ListenerError(String(event), thrown, this.secrets);
    // A failing listener of `error` must not receive its own failure: that would never end.
    if (event === 'error') warnOf(error);
    else (this as unknown as Emitter<{ error: [error: Error] }>).emit('error', error);
  }
}

// Aliases, as in eventemitter3.
/* eslint-disable @typescript-eslint/unbound-method -- they stay methods */
Emitter.prototype.addListener = Emitter.prototype.on;
Emitter.prototype.removeListener = Emitter.prototype.off;
