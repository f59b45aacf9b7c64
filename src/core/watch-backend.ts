/** A directory that was consulted while a target's path was resolved. */
export interface WatchedDirectory {
  /** Absolute, with every link on the way resolved. */
  readonly path: string;
  /** Which directory stands at that path: changes when another one takes its place. */
  readonly identity: string;
  /** In an ancestor only these entries matter; undefined: every entry does. */
  readonly entries?: ReadonlySet<string>;
  /** It is part of a tree that is watched whole; undefined: what is below it does not matter. */
  readonly tree?: WatchedTree;
}

/** A directory that is watched with all that is below it. Each directory in it is listed, too. */
export interface WatchedTree {
  /** Its top: absolute, with every link on the way resolved. */
  readonly root: string;
  /** Globs relative to the root, see `PathGlobs`: what they match, and what is below that, does not matter. */
  readonly ignore: readonly string[];
}

/** Where a backend says what it has to say. */
export interface HintSink {
  /**
   * Something may have changed: look again. Never wrong, at worst in vain.
   * @param written the name of an entry whose bytes were changed in place, if the kernel says so.
   * @param path the entry that it is about, absolute; undefined: it may be about anything. About a directory, it is
   * about all that is below.
   */
  hint(written?: string, path?: string): void;
  /** The subscription is dead: close it and subscribe anew. */
  down(error: unknown): void;
}

/** A live subscription of a backend. */
export interface WatchSubscription {
  /**
   * Watches exactly these directories from now on. Called after every check, mostly with what is watched
   * already, so it must be cheap then. Returns the paths of the directories that were opened because they were
   * not watched before: the watcher looks there again, since something may have happened in between. (Of a tree
   * that is opened as one, its root.) May throw the errno error of the directory that could not be watched;
   * `ENOENT` and `ENOTDIR` mean that it moved meanwhile.
   */
  setDirectories(directories: readonly WatchedDirectory[]): readonly string[] | Promise<readonly string[]>;
  /** Stops every hint. Must not throw. */
  close(): void | Promise<void>;
}

/** A source of hints. It need not be right about what happened, only soon. */
export interface WatchBackend {
  /** Shown as `backend` in `status()` and as `cause` of the changes it led to. */
  readonly name: string;
  /**
   * Every write in place is told by name. Then a new file that nobody was seen writing was renamed into place,
   * and is reported at once; otherwise it has to settle first. Default false.
   */
  readonly reportsWrites?: boolean;
  /**
   * `persistent: false` means that watching must not keep the process alive. It must come to an end: `close()` of a
   * watcher waits for it, to give back what it grants.
   */
  subscribe(
    sink: HintSink,
    options: { readonly persistent: boolean },
  ): WatchSubscription | Promise<WatchSubscription>;
}
