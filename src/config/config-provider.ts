/** The interface of a provider, modeled on koanf. */
import type { Degradation, Readable, Recovery } from '../core/lifecycle/events.js';
import type { ConfigWarning } from './places.js';

/** Reads configuration from somewhere, and may watch it. A `ConfigLoader` accepts any implementation. */
export interface ConfigProvider {
  /** The name of the source in problems and events, for example a path. */
  readonly name: string;
  /** The digest of the bytes last read, `sha256:…`, if known. */
  readonly digest?: string | undefined;
  /** What may surprise the author of the values last read. The loader emits each one once as `warning`. */
  readonly warnings?: readonly ConfigWarning[] | undefined;
  /** Resolves to the values, a map; to undefined if there are none and the source is optional. */
  read(): Promise<unknown>;
  /**
   * Resolves to what the source consists of, the lowest layer first; a loader reads these providers instead of this
   * one. Each is accepted for itself, so one that is bad does not block the others, and is known by its name.
   */
  parts?(): Promise<readonly ConfigProvider[]>;
  /**
   * Calls back after each change and on each error until `unwatch()`. Rejects when watching cannot begin, and when
   * the provider is already being watched.
   */
  watch?(callback: ProviderCallback, health?: ProviderHealth): Promise<void>;
  /**
   * Checks the source at once, for a provider whose `read()` returns the last known state while it is watched. Called
   * by `check()` of the loader before it reads.
   */
  check?(): Promise<void>;
  /** Stops watching. Has no effect if the provider is not watched. The loader waits at most `parseTimeoutMs` for it. */
  unwatch?(): Promise<void>;
}

/** Called with an event after a change, or with an error. After an error, watching continues. */
export type ProviderCallback<Event = unknown> = (
  event: Event | undefined,
  error: Error | undefined,
) => unknown;

/** Receives the state of watching. A provider that does not know the state need not call this. */
export interface ProviderHealth {
  /** After an error, the source can be read again, or no longer exists, even if nothing has changed. */
  readonly readable: (readable: Readable) => void;
  /** Native watching is unavailable, and the source is polled. */
  readonly degraded: (degradation: Degradation) => void;
  /** Native watching works again. */
  readonly recovered: (recovery: Recovery) => void;
}
