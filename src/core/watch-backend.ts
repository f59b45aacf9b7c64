/** A directory that was consulted while the path of a target was resolved. */
export interface WatchedDirectory {
  /** Absolute, with every link resolved. */
  readonly path: string;
  /** Identifies the directory at that path; changes when another directory replaces it. */
  readonly identity: string;
  /** In an ancestor: the entries that matter. Undefined: all of them. */
  readonly entries?: ReadonlySet<string>;
  /** The tree that it belongs to; undefined if nothing below the directory matters. */
  readonly tree?: WatchedTree;
}

/** A directory that is watched recursively. Each directory below it is listed as well. */
export interface WatchedTree {
  /** Its top: absolute, with every link resolved. */
  readonly root: string;
  /** Globs relative to the root. What they match is ignored with everything below it. */
  readonly ignore: readonly string[];
}

/** What a backend knows about an event. All of it is optional. */
export type Hint =
  | {
      /** The absolute path of the entry concerned. If that is a directory, anything below it may have changed too. */
      readonly path: string;
      /** The kernel reported that the bytes of this file were changed in place. Default false. */
      readonly written?: boolean | undefined;
    }
  | { readonly path?: undefined; readonly written?: undefined };

/** Receives what a backend reports. */
export interface HintSink {
  /** Something may have changed: the target is checked. A needless hint costs one check. */
  hint(hint?: Hint): void;
  /** The subscription no longer works. It is closed, and a new one is opened. */
  down(error: unknown): void;
}

/** An open subscription of a backend. */
export interface WatchSubscription {
  /**
   * Sets the directories to watch from now on. Called after every check, usually with the directories that are
   * watched already, and must be cheap then.
   *
   * Returns the paths of the directories that were not watched before (of a tree that is opened as a whole, its
   * root): these are checked again, because something may have changed before they were watched. May throw the errno
   * error of a directory that cannot be watched; `ENOENT` and `ENOTDIR` mean that it has moved.
   */
  setDirectories(directories: readonly WatchedDirectory[]): readonly string[] | Promise<readonly string[]>;
  /** Ends the subscription: no more hints. Must not throw. */
  close(): void | Promise<void>;
}

/** A source of hints. Hints need not be right about what happened, only early. */
export interface WatchBackend {
  /** Shown as `backend` in `status()`, and as the `cause` of changes that its hints led to. */
  readonly name: string;
  /**
   * Every write in place is reported with `written`. A new file for which none was reported is then known to have
   * been renamed into place, and is reported at once; otherwise it has to settle first. Default false.
   */
  readonly reportsWrites?: boolean;
  /**
   * Its hints are events of the local kernel, which network and FUSE file systems do not give. There the target is
   * polled instead. Default false.
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
