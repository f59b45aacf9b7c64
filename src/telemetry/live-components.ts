import type { ComponentHandle } from '../core/telemetry-messages.js';
import type { Operation, Point } from './observe.js';
import { isShown } from './status-of.js';

/**
 * The components that have published a message and are not closed. One that was started before there was a
 * subscriber appears with its next check, request or event.
 */
export class LiveComponents {
  readonly #components = new Set<ComponentHandle>();

  [Symbol.iterator](): Iterator<ComponentHandle> {
    return this.#components[Symbol.iterator]();
  }

  point({ name, message: { component } }: Point): void {
    if (name === 'close') this.#components.delete(component);
    else this.#add(component);
  }

  started({ message: { component } }: Operation): void {
    if (component) this.#add(component);
  }

  #add(component: ComponentHandle): void {
    if (this.#components.has(component)) return;
    const { state } = component.status();
    // Volumes have no gauges, and there may be many of them.
    if (isShown(component) && state !== 'idle' && state !== 'closed') this.#components.add(component);
  }
}
