import type { ComponentHandle } from '../core/telemetry.js';
import type { Operation, Point } from './observe.js';

/**
 * The components that have shown themselves and are not closed. One that was started before anybody subscribed shows
 * itself with its next check, request or event.
 */
export class LiveComponents {
  readonly #components = new Set<ComponentHandle>();

  [Symbol.iterator](): Iterator<ComponentHandle> {
    return this.#components[Symbol.iterator]();
  }

  point({ name, message: { component } }: Point): void {
    if (name === 'closed') this.#components.delete(component);
    else this.#add(component);
  }

  started({ message: { component } }: Operation): void {
    if (component) this.#add(component);
  }

  #add(component: ComponentHandle): void {
    if (this.#components.has(component)) return;
    const { state } = component.status();
    // Writing volumes need no start, and have nothing to show.
    if (state !== 'idle' && state !== 'closed') this.#components.add(component);
  }
}
