import type { ComponentEvents } from '../core/lifecycle/component.js';
import type { ListenerError } from '../core/errors/errors.js';
import type { Degradation, Readable, Recovery, Restart, Unreadable } from '../core/lifecycle/events.js';
import type { Change } from './change.js';

/** A new revision with the same contents. */
export interface RevisionChange {
  readonly previous: string | undefined;
  readonly current: string;
}

/** A problem that watching cannot solve. */
export interface WatcherWarning {
  /**
   * `subPath`: a single file or one revision of a volume is mounted; it never shows an update.
   * `limit`: there is more to read than the options allow, so some contents are not read.
   * `certificate`: `TlsFiles` only: the set in use has a certificate for which some peers reject it.
   * `stale`: `TokenFile` and `TokenRefresher` only: the token should have been replaced, and is still accepted.
   */
  readonly code: 'subPath' | 'limit' | 'certificate' | 'stale';
  /** What the problem is, and what to do. */
  readonly message: string;
}

/** The events of a `ResilientWatcher`. */
export interface ResilientWatcherEvents extends ComponentEvents {
  /** The contents differ from those last reported. Emitted once for each difference, when it is complete. */
  change: [change: Change];
  /** A new revision was published, in which the contents of this target are the same. */
  revision: [revision: RevisionChange];
  /** The target cannot be read; what was last reported stays `current`. Once for each reason, until `readable`. */
  unreadable: [unreadable: Unreadable];
  /** The target can be read again, or no longer exists. */
  readable: [readable: Readable];
  /** The backend failed; the next attempt to subscribe begins after `delayMs`. */
  restart: [restart: Restart];
  /** Native watching is unavailable, and the target is polled. Once, until `recovered`. */
  degraded: [degradation: Degradation];
  /** Native watching works again. */
  recovered: [recovery: Recovery];
  /** A problem that watching cannot solve. Once for each message. */
  warning: [warning: WatcherWarning];
  /**
   * A listener or a function in `recursive.ignore` or `include` failed. Without a listener, it becomes a process
   * warning.
   */
  error: [error: ListenerError];
}

/** An event by name, with its payload. */
export type WatcherEvent = {
  [E in keyof ResilientWatcherEvents]: { readonly name: E; readonly payload: ResilientWatcherEvents[E][0] };
}[keyof ResilientWatcherEvents];
