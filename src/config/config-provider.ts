/** The shape of a provider, modelled on koanf. */
import type { Degradation, Readable, Recovery } from '../core/events.js';

/** Reads configuration from somewhere, and may watch it. A `ConfigLoader` accepts any implementation. */
export interface ConfigProvider {
  /** The name of the source in problems and events, for example a path. */
  readonly name: string;
  /** The digest of the bytes last read, `sha256:…`, if known. */
  readonly digest?: string | undefined;
  /** Resolves to the values, a map; to undefined if there are none and the source is optional. */
  read(): Promise<unknown>;
  /** Resolves to the bytes, for a parser; to undefined if there are none and the source is optional. */
  readBytes?(): Promise<Uint8Array | undefined>;
  /**
   * Calls back after each change and on each error until `unwatch()`. Rejects when watching cannot begin, and when
   * the provider is already being watched.
   */
  watch?(callback: ProviderCallback, health?: ProviderHealth): Promise<void>;
  /**
   * Examines the source at once, for a provider that, while it is watched, reads what it last saw. Called by `check()` of
   * the loader before it reads.
   */
  check?(): Promise<void>;
  /** Stops watching. Has no effect if the provider is not watched. The loader waits for it for `parseTimeoutMs` at most. */
  unwatch?(): Promise<void>;
}

/** Called with an event after a change, or with an error. After an error, watching continues. */
export type ProviderCallback<Event = unknown> = (
  event: Event | undefined,
  error: Error | undefined,
) => unknown;

/** Receives the state of watching. A provider that does not know it need not call it. */
export interface ProviderHealth {
  /** After an error: the source can be read again, or is gone, even if nothing has changed. */
  readonly readable: (readable: Readable) => void;
  /** Native watching is unavailable, and the source is polled. */
  readonly degraded: (degradation: Degradation) => void;
  /** Native watching works again. */
  readonly recovered: (recovery: Recovery) => void;
}
