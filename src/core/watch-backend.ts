/** A directory that took part in resolving the path of a target. */
export interface WatchedDirectory {
  /** Absolute, with every link resolved. */
  readonly path: string;
  /** Identifies the directory at that path; changes when another directory replaces it. */
  readonly identity: string;
  /** In an ancestor: the entries that matter. Undefined: all of them. */
  readonly entries?: ReadonlySet<string>;
  /** The tree to which it belongs; undefined if nothing below the directory matters. */
  readonly tree?: WatchedTree;
}

/** A directory that is watched recursively. Each directory below it has a `WatchedDirectory` as well. */
export interface WatchedTree {
  /** Its top: absolute, with every link resolved. */
  readonly root: string;
  /** Globs relative to the root. Matching entries are ignored with everything below them. */
  readonly ignore: readonly string[];
}

/** The details of an event, as far as a backend knows them. */
export type Hint =
  | {
      /** The absolute path of the entry concerned. If that is a directory, anything below it may have changed too. */
      readonly path: string;
      /** The kernel reported that the bytes of this file were changed in place. Default false. */
      readonly written?: boolean | undefined;
    }
  | { readonly path?: undefined; readonly written?: undefined };

/** Receives the reports of a backend. */
export interface HintSink {
  /** Reports that something may have changed: the target is checked. A needless hint costs one check. */
  hint(hint?: Hint): void;
  /** Reports that the subscription no longer works. It is closed, and a new one is opened. */
  down(error: unknown): void;
}

/** An open subscription of a backend. */
export interface WatchSubscription {
  /**
   * Sets the directories to watch from now on. Called after every check, usually with the directories that are
   * watched already, and must be cheap then.
   *
   * Returns the paths of the directories that were not watched before, or not for these entries (for a tree that is opened
   * as a whole, its root). They are checked again, because something may have changed before they were watched. If a
   * directory cannot be watched, it may throw the errno error; `ENOENT` and `ENOTDIR` mean that the directory has moved.
   */
  setDirectories(directories: readonly WatchedDirectory[]): readonly string[] | Promise<readonly string[]>;
  /** Ends the subscription: no more hints. Must not throw. */
  close(): void | Promise<void>;
}

/** A source of hints. A hint has to be early; it need not be accurate. */
export interface WatchBackend {
  /** Shown as `backend` in `status()`, and as the `cause` of the changes found by its hints. */
  readonly name: string;
  /**
   * Whether every event is reported separately, and every write in place with `written`. If a single event was about a file
   * that replaced another one, it is then known to have been renamed into place, and is reported at once; otherwise it has
   * to settle first. If events are merged, every hint leads to a check, whichever path it names. Default false.
   */
  readonly reportsWrites?: boolean;
  /**
   * Whether its hints are events of the local kernel, which network and FUSE file systems do not provide. On these the
   * target is polled instead. Default false.
   */
  readonly needsKernelEvents?: boolean;
  /**
   * Opens a subscription. With `persistent: false` it must not keep the process alive. The returned promise must
   * settle: `close()` of a watcher waits for it.
   */
  subscribe(
    sink: HintSink,
    options: { readonly persistent: boolean },
  ): WatchSubscription | Promise<WatchSubscription>;
}
