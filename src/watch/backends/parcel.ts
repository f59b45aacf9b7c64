/**
 * The backend `parcel`: `@parcel/watcher` for the directories that a tree has when it is subscribed, and the backend `fs`
 * for everything else: directories that appear later or are replaced, trees that the module can never watch again, and
 * what is not in a tree.
 */

import { constants, nodeFileSystem } from '../../core/ports/builtins.js';
import { BackendError } from '../../core/errors/backend-error.js';
import { hasMoved } from '../../core/errors/errno.js';
import { pathForCall, told } from '../../core/ports/platform-path.js';
import type {
  HintSink,
  WatchBackend,
  WatchedDirectory,
  WatchSubscription,
} from '../../core/ports/watch-backend.js';
import { backendFailure } from './backend-failure.js';
import {
  isStale,
  joinTree,
  leaveTree,
  loadParcel,
  parcelName,
  type ParcelTree,
  type TreeListener,
} from './parcel-watch.js';

/**
 * Hints from `@parcel/watcher`: inotify on Linux, FSEvents on macOS, ReadDirectoryChangesW on Windows. They come 50 to
 * 500 ms late while anything that the module watches for the process is busy, and at once after half a second of quiet.
 *
 * The native module always holds the event loop: even with `persistent: false`, a tree keeps the process alive until it
 * is closed.
 *
 * `subscribe` throws {@link BackendError} `ERR_BACKEND_UNAVAILABLE` when the native module is missing, in a
 * worker thread, and after the module has died three times in this process. `setDirectories` throws that too, and
 * `ERR_BACKEND_LIMIT` when an inotify limit is reached.
 * @param others watches what is not in the listing of a tree.
 */
export const parcelBackend = (others: WatchBackend): WatchBackend => ({
  name: parcelName,
  needsKernelEvents: true,
  async subscribe(sink, options) {
    await loadParcel();
    return new ParcelSubscription(sink, await others.subscribe(sink, options));
  },
});

class ParcelSubscription implements WatchSubscription {
  readonly #others: WatchSubscription;
  readonly #listener: TreeListener;
  /** By the path of the root. */
  readonly #trees = new Map<string, ParcelTree>();
  #isClosed = false;
  #joining: Promise<unknown> = Promise.resolve();
  /** The directories of the last call, the versions of the trees at that time, and what they do not cover. */
  #set: { readonly directories: readonly WatchedDirectory[]; readonly version: number } | undefined;
  #roots: ReadonlyMap<string, WatchedDirectory> = new Map();
  #rest: readonly WatchedDirectory[] = [];

  constructor(sink: HintSink, others: WatchSubscription) {
    this.#others = others;
    this.#listener = {
      changed: (path) => {
        if (!this.#isClosed) sink.hint(path === undefined ? undefined : { path });
      },
      died: (error) => {
        if (!this.#isClosed) sink.down(error);
      },
    };
  }

  setDirectories(directories: readonly WatchedDirectory[]): readonly string[] | Promise<readonly string[]> {
    const isSame = directories === this.#set?.directories;
    const roots = isSame ? this.#roots : rootsIn(directories);
    if (roots.size === this.#trees.size && [...roots.values()].every((root) => this.#isJoined(root)))
      return this.#watchRest(directories);
    this.#roots = roots;
    const joined = this.#joining.then(() => this.#join(roots, directories));
    this.#joining = joined.catch(() => undefined);
    return joined;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#others.close();
    await this.#joining;
    for (const tree of this.#trees.values()) await leaveTree(tree, this.#listener);
  }

  #isJoined({ path, identity }: WatchedDirectory): boolean {
    const tree = this.#trees.get(path);
    return tree?.root.identity === identity && !tree.isGone;
  }

  async #join(
    roots: ReadonlyMap<string, WatchedDirectory>,
    directories: readonly WatchedDirectory[],
  ): Promise<readonly string[]> {
    this.#set = undefined;
    for (const [path, tree] of this.#trees) {
      const root = roots.get(path);
      if (root && this.#isJoined(root)) continue;
      this.#trees.delete(path);
      await leaveTree(tree, this.#listener);
    }
    const joined: string[] = [];
    for (const [path, root] of roots) {
      if (this.#isClosed) break;
      if (this.#trees.has(path)) continue;
      const members = directories.filter(({ treeRoot }) => treeRoot === path);
      const tree = await this.#joinAt(root, members);
      if (!tree) continue;
      this.#trees.set(path, tree);
      joined.push(...members.map((member) => member.path));
    }
    this.#roots = new Map([...roots].filter(([path]) => this.#trees.has(path)));
    if (this.#isClosed) return joined;
    return [...joined, ...(await this.#watchRest(directories))];
  }

  /** Watches what no tree covers. */
  #watchRest(directories: readonly WatchedDirectory[]): readonly string[] | Promise<readonly string[]> {
    const version = [...this.#trees.values()].reduce((sum, tree) => sum + tree.version, 0);
    if (directories !== this.#set?.directories || version !== this.#set.version) {
      this.#set = { directories, version };
      this.#rest = directories.filter(
        (each) => !(each.treeRoot !== undefined && this.#trees.get(each.treeRoot)?.covers(each)),
      );
    }
    return this.#others.setDirectories(this.#rest);
  }

  async #joinAt(
    root: WatchedDirectory,
    members: readonly WatchedDirectory[],
  ): Promise<ParcelTree | undefined> {
    try {
      return await joinTree(root, members, this.#listener);
    } catch (error) {
      if (error instanceof BackendError) throw error;
      const failure = (await errorOf(root.path)) ?? movedMeanwhile(root.path, error as Error);
      if (failure instanceof Error && hasMoved(failure)) throw failure;
      throw backendFailure(parcelName, root.path, failure ?? error);
    }
  }
}

/** The root of each tree that the module can watch, by its path. */
function rootsIn(directories: readonly WatchedDirectory[]): Map<string, WatchedDirectory> {
  return new Map(
    directories
      .filter(({ path, treeRoot }) => treeRoot === path && !isStale(path))
      .map((root) => [root.path, root]),
  );
}

/**
 * The system's error for a directory: parcel's messages for a missing, a wrong and an unreadable directory have no
 * code.
 */
async function errorOf(path: string): Promise<unknown> {
  try {
    const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
    const directory = await nodeFileSystem.promises.open(
      pathForCall(path),
      O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
    );
    await directory.close();
    return undefined;
  } catch (error) {
    return error;
  }
}

/** Whether the root, or a directory below it, was missing when parcel came to it, and the root exists now. */
function movedMeanwhile(path: string, cause: Error): Error | undefined {
  if (!/Bad file descriptor|No such file or directory|Not a directory/.test(cause.message)) return undefined;
  const moved = new Error(`ENOENT: a directory was moved while the tree was opened, watch '${told(path)}'`, {
    cause,
  });
  return Object.assign(moved, { code: 'ENOENT', syscall: 'watch', path: told(path) });
}
