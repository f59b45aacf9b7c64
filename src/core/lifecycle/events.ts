/** Payloads that several components share: an event of the same name carries the same payload everywhere. */
import type { BackendError } from '../errors/backend-error.js';
import type { ResilientError } from '../errors/resilient-error.js';

/**
 * The file or directory cannot be read; it may recover by itself. Emitted once for each reason, until
 * `readable`.
 */
export interface Unreadable {
  /** Why, with a `code`: `ERR_TARGET_ACCESS`, for example. */
  readonly error: ResilientError;
}

/** The file or directory can be read again. */
export interface Readable {
  /** How long it was unreadable, ms. */
  readonly unreadableMs: number;
}

/** The newest contents are in use again, after `rejected`: other good ones, or the same as before. */
export interface Acceptance {
  /** How long what was on disk was not used, ms. */
  readonly rejectedMs: number;
}

/** Native watching is unavailable; the target is polled. Emitted once, until `recovered`. */
export interface Degradation {
  /** Why. For an inotify limit (`ERR_BACKEND_LIMIT`) it carries the `sysctl` to raise. */
  readonly error: BackendError;
  /** How often the target is checked meanwhile, ms. */
  readonly pollIntervalMs: number;
}

/** Native watching works again. */
export interface Recovery {
  /** The name of the backend in use now. */
  readonly backend: string;
  /** How long the target was polled, ms. */
  readonly degradedMs: number;
}

/** The last good value expired before there was a newer one. Emitted once for each value. */
export interface Expiry<T> {
  /** The value that has expired. */
  readonly current: T;
  /** Why there is no newer one. */
  readonly error: ResilientError;
}

/** The backend failed; the next attempt to subscribe begins after `delayMs`. */
export interface Restart {
  /** 1 for the first attempt since the backend failed. */
  readonly attempt: number;
  /** The delay before this attempt, ms. */
  readonly delayMs: number;
  /** Why the backend failed. */
  readonly error: BackendError;
}
