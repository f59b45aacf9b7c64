import { ResilientError, type BackendErrorCode } from '../core/errors.js';
import type { WatchedDirectory } from '../core/watch-backend.js';
import type { Snapshot } from '../fs/snapshot.js';

/** Something that no watcher can cure. */
export interface WatcherWarning {
  /**
   * `subPath`: the file is mounted by itself, or is one revision of a volume; it never shows an update.
   * `limit`: there is more to read than the options allow, so that some contents are left out.
   */
  readonly code: 'subPath' | 'limit';
  /** What it is and what to do. */
  readonly message: string;
}

/** How a watcher is; plain data. Moments are epoch ms. */
export interface WatcherStatus {
  readonly path: string;
  /**
   * `watching`: hints come. `recovering`: the backend was lost, it is subscribed again, the target is polled
   * meanwhile. `degraded`: it could not be had when last tried; polled, and tried again.
   */
  readonly state: 'idle' | 'starting' | 'watching' | 'recovering' | 'degraded' | 'closed';
  /** What was last reported of the target; `unreadable` while an error stands. */
  readonly target: Snapshot['kind'] | 'unreadable';
  readonly revision: string | null;
  /** Where hints come from now; null when it is not running. */
  readonly backend: string | null;
  /** Why it is not `watching`. */
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
  /** Of these, found by the resync only: no hint had come. Many mean a file system without events. */
  readonly resyncs: number;
  readonly lastChangeAt: number | null;
  readonly lastCheckAt: number | null;
  readonly watchedDirectories: readonly string[];
  readonly warnings: readonly WatcherWarning[];
  readonly lastError: {
    readonly name: string;
    readonly code: string;
    readonly message: string;
    readonly at: number;
  } | null;
}

type Counted = Pick<
  WatcherStatus,
  'changes' | 'resyncs' | 'lastChangeAt' | 'lastCheckAt' | 'watchedDirectories' | 'warnings' | 'lastError'
>;

/** Counts and last moments, for the status. */
export class Tally {
  #changes = 0;
  #resyncs = 0;
  #lastChangeAt: number | null = null;
  #lastCheckAt: number | null = null;
  #directories: readonly WatchedDirectory[] = [];
  readonly #warnings = new Map<WatcherWarning['code'], WatcherWarning>();
  #lastError: WatcherStatus['lastError'] = null;

  looked(at: number): void {
    this.#lastCheckAt = at;
  }

  directoriesSet(directories: readonly WatchedDirectory[]): void {
    this.#directories = directories;
  }

  changed(at: number, cause: string): void {
    this.#lastChangeAt = at;
    this.#changes += 1;
    if (cause === 'resync') this.#resyncs += 1;
  }

  failed(at: number, error: Error): void {
    const code = error instanceof ResilientError ? error.code : '';
    this.#lastError = { name: error.name, code, message: error.message, at };
  }

  /** Takes in a warning, or with no message its end. True when it says something new. */
  warn(code: WatcherWarning['code'], message: string | undefined): boolean {
    const before = this.#warnings.get(code)?.message;
    if (message === undefined) this.#warnings.delete(code);
    else this.#warnings.set(code, { code, message });
    return message !== undefined && message !== before;
  }

  report(): Counted {
    return {
      changes: this.#changes,
      resyncs: this.#resyncs,
      lastChangeAt: this.#lastChangeAt,
      lastCheckAt: this.#lastCheckAt,
      watchedDirectories: this.#directories.map(({ path }) => path),
      warnings: [...this.#warnings.values()],
      lastError: this.#lastError,
    };
  }
}
