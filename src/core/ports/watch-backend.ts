/** A directory in which an entry was looked up to find a target, or a file that is mounted by itself. */
export interface WatchedDirectory {
  /** Absolute, with every link resolved. */
  readonly path: string;
  /** Identifies the directory at that path; differs when another directory replaces it. */
  readonly identity: string;
  /** The entries that matter. Undefined: all of them. */
  readonly entries?: readonly string[];
  /**
   * Whether these entries are only ancestors of the target. If the directory cannot be watched, only the resync finds
   * that one of them was renamed. Default false.
   */
  readonly isAncestor?: boolean;
  /**
   * Whether it is a file that is mounted by itself: what is written into it is an event of the file, but not of the
   * directory where it is mounted. Default false.
   */
  readonly isFile?: boolean;
  /**
   * The root of the tree to which it belongs: absolute, with every link resolved. Each directory of a tree has a
   * `WatchedDirectory`. Undefined if nothing below the directory matters.
   */
  readonly treeRoot?: string;
}

/** What a backend knows about an event. */
export interface Hint {
  /**
   * The absolute path of the changed entry. If that is a directory, anything below it may also have changed. Undefined:
   * anything may have changed. A name with U+FFFD may be one that is not UTF-8, and stands for any entry of its
   * directory.
   */
  readonly path?: string | undefined;
  /**
   * Any object that stands for the event. The checks of all watchers that receive the same object in one turn of the
   * event loop share what they look up. Use a new one for each event. Undefined: nothing is shared.
   */
  readonly event?: object | undefined;
}

/** Receives the reports of a backend. */
export interface HintSink {
  /** Reports that something may have changed, so that the target is checked. A needless hint costs one check. */
  hint(hint?: Hint): void;
  /** Reports that the subscription no longer works. It is closed, and a new one is opened. */
  down(error: unknown): void;
}

/** An open subscription of a backend. */
export interface WatchSubscription {
  /**
   * Sets the directories to watch from now on. Called after every check, usually with the same directories, and must be
   * cheap then.
   *
   * Returns the paths of the directories that were not watched before, also of those in a tree that is opened as a
   * whole, and of the entries that were not listened to in the others. They are checked again, because something may
   * have changed before they were watched. If a directory cannot be watched, this may throw the errno error; `ENOENT`
   * and `ENOTDIR` mean that it was moved. If it has not answered after 10 s, the subscription is closed as if it was down.
   */
  setDirectories(directories: readonly WatchedDirectory[]): readonly string[] | Promise<readonly string[]>;
  /** Ends the subscription: no more hints. Must not throw. Awaited for 10 s at most. */
  close(): void | Promise<void>;
}

/** A source of hints. A hint has to be early; it need not be accurate. */
export interface WatchBackend {
  /** Shown as `backend` in `status()`, and as the `cause` of the changes found by its hints. */
  readonly name: string;
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
