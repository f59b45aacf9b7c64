import type { ComponentStatus } from '../core/lifecycle/component.js';
import { flag, seconds, type StatusDescription } from '../core/telemetry/status-description.js';
import type { BackendError } from '../core/errors/backend-error.js';
import type { Snapshot } from '../fs/snapshot.js';
import type { WatcherWarning } from './watcher-events.js';

/** The states of a watcher. */
export type WatcherState = 'idle' | 'starting' | 'watching' | 'recovering' | 'degraded' | 'closed';

/** The status of a watcher, as plain data without contents. Times are epoch ms. */
export interface WatcherStatus extends ComponentStatus {
  /** The watched path, absolute; for a group, all paths. */
  readonly path: string;
  /**
   * `watching`: a backend is subscribed. `recovering`: the backend failed and is being subscribed again. `degraded`:
   * native watching is unavailable. While the watcher is `recovering` or `degraded`, the target is polled.
   */
  readonly state: WatcherState;
  /** The kind of target that was last reported; `unreadable` while it cannot be read; null before the first report. */
  readonly target: Snapshot['kind'] | 'unreadable' | null;
  /** The revision of the volume; null if the target is not in a volume. */
  readonly revision: string | null;
  /** Where hints come from: the name of a backend, or `poll`; null when the watcher is not running. */
  readonly backend: string | null;
  /** Why native watching is unavailable; null while it works. */
  readonly degraded: {
    readonly code: BackendError['code'];
    readonly message: string;
    /** For an inotify limit: the kernel setting to raise. */
    readonly sysctl: string | null;
  } | null;
  /** Attempts to subscribe again since the start. */
  readonly restarts: number;
  /** Checks that have ended since the start. */
  readonly checks: number;
  /** Changes reported since the start. */
  readonly changes: number;
  /**
   * The changes that only a resync found, without a hint. A high number means that the file system reports no events.
   */
  readonly resyncs: number;
  /** When a change was last reported; null before the first one. */
  readonly lastChangeAt: number | null;
  /** When the last check ended; null before the first one. */
  readonly lastCheckAt: number | null;
  /** The time since then, or until the first check since `start()`, by the monotonic clock, ms; null before that. */
  readonly sinceLastCheckMs: number | null;
  /** The maximum time between two checks without hints, ms; null if checks need hints. */
  readonly checkIntervalMs: number | null;
  /** The directories that are currently watched, and files that are mounted by themselves, absolute. */
  readonly watchedDirectories: readonly string[];
  /** The current problems that watching cannot solve. */
  readonly warnings: readonly WatcherWarning[];
}

/** The states of a running watcher. */
const WATCHER_STATES = ['watching', 'recovering', 'degraded'] as const;
/** The states of the target. */
const TARGET_STATES = ['missing', 'unreadable'] as const;
const WARNING_CODES = ['subPath', 'limit'] as const satisfies readonly WatcherWarning['code'][];

/** A watcher that has missed this many checks in a row has stopped checking. */
const MISSED_CHECKS = 3;

/** Live: a check ended in the last intervals. Ready: contents have been read. */
export const watcherDescription: StatusDescription<WatcherStatus> = {
  health({ sinceLastCheckMs, checkIntervalMs, checks, changes, target }) {
    if (checkIntervalMs !== null && (sinceLastCheckMs ?? 0) > MISSED_CHECKS * checkIntervalMs) {
      const ago = `${Math.round(sinceLastCheckMs ?? 0)} ms ago`;
      return { dead: checks > 0 ? `the last check ended ${ago}` : `the first check began ${ago}` };
    }
    if (changes > 0) return {};
    return { unready: `nothing has been seen yet: the target is ${target ?? 'not checked'}` };
  },
  *metrics({ state, target, warnings, lastChangeAt, lastCheckAt, backend, watchedDirectories }) {
    for (const each of WATCHER_STATES) yield flag('status', state === each, { state: each });
    for (const each of TARGET_STATES) yield flag('status', target === each, { state: each });
    const on = new Set<string>(warnings.map(({ code }) => code));
    for (const code of WARNING_CODES) yield flag('warning', on.has(code), { code });
    yield* seconds('last_change.timestamp', lastChangeAt);
    yield* seconds('last_check.timestamp', lastCheckAt);
    if (backend === null || backend === 'poll') return;
    const labels = { backend };
    // Watchers of the same directory share its watch.
    for (const item of watchedDirectories) yield { metric: 'native_watches', labels, value: 1, item };
  },
};
