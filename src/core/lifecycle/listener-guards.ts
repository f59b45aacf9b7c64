type Listener = (...args: never[]) => unknown;
type Guard = Listener & { readonly listener: Listener };

/**
 * Functions that stand for listeners in an emitter and never throw, so that a listener that fails affects neither the
 * emitter nor the other listeners.
 */
export class ListenerGuards {
  readonly #failed: (event: PropertyKey, thrown: unknown) => void;
  /** One for each listener of an event, so that the emitter finds it again to remove it. */
  readonly #guards = new WeakMap<Listener, Map<PropertyKey, Guard>>();

  /** @param failed called with what a listener of the event threw or rejected with. */
  constructor(failed: (event: PropertyKey, thrown: unknown) => void) {
    this.#failed = failed;
  }

  /** @throws {TypeError} if the listener is not a function. */
  of<L extends Listener>(event: PropertyKey, listener: L): L {
    if (typeof listener !== 'function') throw new TypeError('The listener must be a function');
    const guards = this.#guards.get(listener) ?? new Map<PropertyKey, Guard>();
    this.#guards.set(listener, guards);
    const guard = guards.get(event) ?? this.#create(event, listener);
    guards.set(event, guard);
    return guard as Listener as L;
  }

  #create(event: PropertyKey, listener: Listener): Guard {
    const failed = (thrown: unknown): void => this.#failed(event, thrown);
    function guard(this: unknown, ...args: never[]): void {
      try {
        const result: unknown = Reflect.apply(listener, this, args);
        if (result instanceof Promise) result.catch(failed);
      } catch (error) {
        failed(error);
      }
    }
    const made = Object.assign(guard, { listener });
    // The emitter removes it by itself after `once()`.
    this.#guards.set(made, new Map([[event, made]]));
    return made;
  }
}

export function listenerOf<L extends Listener>(guard: L): L {
  return (guard as Listener as Guard).listener as L;
}

/** Reports an error that no listener received. Node.js prints `detail` below: there, the place in the application. */
export function warnOf(error: Error): void {
  const { cause } = error;
  const place = cause instanceof Error ? { detail: cause.stack } : {};
  process.emitWarning(Object.assign(error, place));
}
