import type { ComponentStatus } from '../core/component.js';
import type { BackendErrorCode } from '../core/backend-error.js';
import type { Snapshot } from '../fs/snapshot.js';
import type { WatcherWarning } from './watcher-events.js';

/** The states of a watcher. */
export type WatcherState = 'idle' | 'starting' | 'watching' | 'recovering' | 'degraded' | 'closed';

/** The status of a watcher, as plain data without contents. Times are epoch ms. */
export interface WatcherStatus extends ComponentStatus {
  readonly path: string;
  /**
   * `watching`: a backend is subscribed. `recovering`: the backend was lost and is subscribed again. `degraded`: native
   * watching is unavailable. While it is `recovering` or `degraded` the target is polled.
   */
  readonly state: WatcherState;
  /** What was last reported of the target; `unreadable` while it cannot be read; null before the first report. */
  readonly target: Snapshot['kind'] | 'unreadable' | null;
  /** The revision of the volume, where the target is in one. */
  readonly revision: string | null;
  /** Where hints come from: the name of a backend, or `poll`; null when the watcher is not running. */
  readonly backend: string | null;
  /** Why native watching is unavailable. */
  readonly degraded: {
    readonly code: BackendErrorCode;
    readonly message: string;
    /** The kernel setting to raise, for the two inotify limits. */
    readonly sysctl: string | null;
  } | null;
  /** Attempts to subscribe again since the start. */
  readonly restarts: number;
  readonly checks: number;
  readonly changes: number;
  /**
   * Changes that were found by a resync only: no hint had come. Many of them mean that the file system gives no events.
   */
  readonly resyncs: number;
  readonly lastChangeAt: number | null;
  /** When the last check ended. */
  readonly lastCheckAt: number | null;
  /** The time since then, by the monotonic clock, ms. */
  readonly sinceLastCheckMs: number | null;
  /** The maximum time between two checks without hints, ms; null when it only checks after hints. */
  readonly checkIntervalMs: number | null;
  readonly watchedDirectories: readonly string[];
  readonly warnings: readonly WatcherWarning[];
}
