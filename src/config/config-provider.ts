/** The shape of a provider, modelled on koanf. */
import type { Degradation, Recovery } from '../core/events.js';

/** Reads configuration from somewhere, and may watch it. A `ConfigLoader` accepts any implementation. */
export interface ConfigProvider {
  /** Names the source in problems and events: a path, for instance. */
  readonly name: string;
  /** `sha256:…` of what was last read, where it is known. */
  readonly digest?: string | undefined;
  /** Returns the values, a map; undefined when there are none and none are required. */
  read(): Promise<unknown>;
  /** Returns the bytes, for a parser; undefined when there are none and none are required. */
  readBytes?(): Promise<Uint8Array | undefined>;
  /**
   * Calls back after each change and on each error until `unwatch()`. Rejects when watching cannot begin, and when
   * the provider is already being watched.
   */
  watch?(callback: ProviderCallback, health?: ProviderHealth): Promise<void>;
  /** Stops watching. Does nothing when it is not being watched. */
  unwatch?(): Promise<void>;
}

/** Called with an event after a change, or with an error. An error is information: watching continues. */
export type ProviderCallback<Event = unknown> = (
  event: Event | undefined,
  error: Error | undefined,
) => unknown;

/** Receives the state of native watching. Optional for providers that do not know it. */
export interface ProviderHealth {
  readonly degraded: (degradation: Degradation) => void;
  readonly recovered: (recovery: Recovery) => void;
}
