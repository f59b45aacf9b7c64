/** Payloads that several components share: an event of the same name carries the same payload everywhere. */
import type { BackendError } from './backend-error.js';

/**
 * The file or directory cannot be read at present; it may heal by itself. Emitted once for each reason, until
 * `readable`.
 */
export interface Unreadable {
  readonly error: Error;
}

/** It can be read again. */
export interface Readable {
  /** How long it could not be read, ms. */
  readonly unreadableMs: number;
}

/** Native watching is unavailable; the target is polled. Emitted once, until `recovered`. */
export interface Degradation {
  /** Why. For the two inotify limits it carries the `sysctl` to raise. */
  readonly error: BackendError;
  /** How often the target is checked meanwhile, ms. */
  readonly pollIntervalMs: number;
}

/** Native watching is back. */
export interface Recovery {
  /** The name of the backend in use now. */
  readonly backend: string;
  /** How long the target was polled, ms. */
  readonly degradedMs: number;
}

/** The last good value has expired, and there is no newer one. Emitted once for each value. */
export interface Expiry<T> {
  /** The value that has expired. */
  readonly current: T;
  /** Why there is no newer one. */
  readonly error: Error;
}

/** The backend was lost; an attempt to subscribe again begins. */
export interface Restart {
  /** 1 for the first attempt since the backend was lost. */
  readonly attempt: number;
  /** How long this attempt was delayed, ms. */
  readonly delayMs: number;
  /** Why the backend was lost. */
  readonly error: BackendError;
}
