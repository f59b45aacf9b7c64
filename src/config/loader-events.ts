import type { ComponentEvents } from '../core/lifecycle/component.js';
import type { ConfigError, ConfigProblem } from './config-error.js';
import type { ConfigWarning } from './places.js';
import type { Acceptance, Degradation, Readable, Recovery, Unreadable } from '../core/lifecycle/events.js';

/** Two configurations that differ. */
export interface ConfigChange<T> {
  /** Undefined in the first change, in which the configuration is loaded. */
  readonly previous: T | undefined;
  readonly current: T;
  /** The paths at which they differ, each from the top. */
  readonly paths: readonly (readonly string[])[];
}

/** An update that is not used. Contains no values. */
export interface ConfigRejection {
  /** The reasons as one error: `ERR_CONFIG_INVALID` with the same problems. */
  readonly error: ConfigError;
  /** The sources whose newest state is refused, with the digest of its bytes (`sha256:…`) if there are any. */
  readonly sources: readonly { readonly name: string; readonly digest: string | undefined }[];
  readonly problems: readonly ConfigProblem[];
}

/** Which source of the loader an event is about. */
export interface OfSource {
  /** The name of the source. */
  readonly source: string;
}

/** The events of a `ConfigLoader`. */
export interface ConfigLoaderEvents<T> extends ComponentEvents {
  /** The configuration was loaded, or has changed; `current` is already the new one. */
  change: [change: ConfigChange<T>];
  /** Something in a source may not mean what its author intended. Once, until it is gone. */
  warning: [warning: ConfigWarning];
  /** An update cannot be parsed or validated; the last good configuration stays. Once for each bad state of a source. */
  rejected: [rejection: ConfigRejection];
  /** The newest contents of a source are in the configuration again, after `rejected` or `reverted`. */
  accepted: [event: Acceptance & OfSource];
  /**
   * A new configuration was not healthy within the time of its trial, and the one before is `current` again, after
   * another `change`. The sources whose newest contents are not used have the state `rejected` until they change.
   */
  reverted: [event: { readonly error: ConfigError; readonly sources: readonly string[] }];
  /** A source cannot be read, or is missing; its last good values stay. Once, until `readable`. */
  unreadable: [event: Unreadable & OfSource];
  /** The source can be read again. */
  readable: [event: Readable & OfSource];
  /** Native watching is unavailable for a source; it is polled. Once, until `recovered`. */
  degraded: [event: Degradation & OfSource];
  /** Native watching of a source works again. */
  recovered: [event: Recovery & OfSource];
}
