import type { ComponentStatus } from '../core/component.js';
import type { BackendErrorCode } from '../core/backend-error.js';
import type { Snapshot } from '../fs/snapshot.js';
import type { WatcherWarning } from './watcher-events.js';

/** The states of a watcher. */
export type WatcherState = 'idle' | 'starting' | 'watching' | 'recovering' | 'degraded' | 'closed';

/** The status of a watcher, as plain data without contents. Times are epoch ms. */
export interface WatcherStatus extends ComponentStatus {
  /** The watched path, absolute; for a group, all paths. */
  readonly path: string;
  /**
   * `watching`: a backend is subscribed. `recovering`: the backend was lost and is subscribed again. `degraded`: native
   * watching is unavailable. While it is `recovering` or `degraded` the target is polled.
   */
  readonly state: WatcherState;
  /** The kind of target that was last reported; `unreadable` while it cannot be read; null before the first report. */
  readonly target: Snapshot['kind'] | 'unreadable' | null;
  /** The revision of the volume; null if the target is not in one. */
  readonly revision: string | null;
  /** Where hints come from: the name of a backend, or `poll`; null when the watcher is not running. */
  readonly backend: string | null;
  /** Why native watching is unavailable; null while it works. */
  readonly degraded: {
    readonly code: BackendErrorCode;
    readonly message: string;
    /** The kernel setting to raise, for the two inotify limits. */
    readonly sysctl: string | null;
  } | null;
  /** Attempts to subscribe again since the start. */
  readonly restarts: number;
  /** Checks that have ended since the start. */
  readonly checks: number;
  /** Changes reported since the start. */
  readonly changes: number;
  /**
   * Changes that only a resync found, without a hint. Many of them mean that the file system reports no events.
   */
  readonly resyncs: number;
  /** When a change was last reported; null before the first one. */
  readonly lastChangeAt: number | null;
  /** When the last check ended; null before the first one. */
  readonly lastCheckAt: number | null;
  /** The time since then, by the monotonic clock, ms. */
  readonly sinceLastCheckMs: number | null;
  /** The maximum time between two checks without hints, ms; null when it only checks after hints. */
  readonly checkIntervalMs: number | null;
  /** The directories that are watched now, absolute. */
  readonly watchedDirectories: readonly string[];
  /** The problems that watching cannot solve, at present. */
  readonly warnings: readonly WatcherWarning[];
}
