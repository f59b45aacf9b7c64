import { constants, promises } from 'node:fs';
import { sep } from 'node:path';

import { backendFailure } from './backend-failure.js';
import { errnoOf, hasMoved } from '../../core/errno.js';
import { BackendError } from '../../core/backend-error.js';
import { pathForCall } from '../../core/path-bytes.js';
import { systemClock } from '../../core/clock.js';
import type { Clock } from '../../core/clock.js';
import type {
  HintSink,
  WatchBackend,
  WatchedDirectory,
  WatchSubscription,
} from '../../core/watch-backend.js';
import { DATA_LINK } from '../../fs/volume-layout.js';
import { loadParcel, openParcelWatch, parcelName } from './parcel-watch.js';
import type { ParcelListener, ParcelWatch } from './parcel-watch.js';
import { TreeCoverage } from './tree-coverage.js';

/**
 * Hints from `@parcel/watcher`: inotify on Linux, FSEvents on macOS, ReadDirectoryChangesW on Windows. Hints
 * come at once after half a second of quiet, and 50 to 500 ms late while anything watched by the process is
 * busy.
 *
 * The native module always holds the event loop: even with `persistent: false`, an open subscription keeps the process
 * alive until it is closed.
 *
 * `subscribe` throws {@link BackendError} `ERR_BACKEND_UNAVAILABLE` when the native module is missing, in a
 * worker thread, and after the module has died three times in this process. `setDirectories` throws that too, and
 * `ERR_BACKEND_LIMIT` when an inotify limit is reached.
 */
export class ParcelBackend implements WatchBackend {
  readonly name = parcelName;
  readonly needsKernelEvents = true;
  readonly #clock: Clock;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  async subscribe(sink: HintSink): Promise<WatchSubscription> {
    await loadParcel();
    return new ParcelSubscription(sink, this.#clock);
  }
}

/** A tree that is watched. */
interface Tree {
  readonly coverage: TreeCoverage;
  /** A new value when the tree has to be opened again. */
  generation: number;
  /** The listing that the tree was last opened with, which must not be used when it is opened again. */
  listing?: number;
}

class ParcelSubscription implements WatchSubscription {
  readonly #sink: HintSink;
  readonly #clock: Clock;
  /** The open watches by `keyOf`; `undefined` for an ancestor that may not be read. */
  readonly #watches = new Map<string, ParcelWatch | undefined>();
  readonly #listener: ParcelListener = {
    changed: (path, isMade = false) => {
      if (this.#state !== 'open') return;
      if (path !== undefined) for (const { coverage } of this.#trees.values()) coverage.report(path, isMade);
      this.#sink.hint(path === undefined ? undefined : { path });
    },
    died: (error) => {
      if (this.#state !== 'open') return;
      this.#state = 'down';
      this.#sink.down(error);
    },
  };
  /** By root. */
  readonly #trees = new Map<string, Tree>();
  #state: 'open' | 'down' | 'closed' = 'open';
  #setting: Promise<unknown> = Promise.resolve();
  #directoriesSet: readonly WatchedDirectory[] | undefined;

  constructor(sink: HintSink, clock: Clock) {
    this.#sink = sink;
    this.#clock = clock;
  }

  setDirectories(directories: readonly WatchedDirectory[]): readonly string[] | Promise<readonly string[]> {
    // A tree has many directories, and most checks find the same directories.
    if (directories === this.#directoriesSet && this.#isIntact()) return [];
    const wanted = this.#watchesFor(directories);
    const watched = [...wanted.keys()].every((key) => this.#isWatched(key));
    if (watched && wanted.size === this.#watches.size) {
      this.#directoriesSet = directories;
      return [];
    }
    this.#directoriesSet = undefined;
    const directoriesSet = this.#setting.then(() => this.#setDirectories(wanted));
    this.#setting = directoriesSet.catch(() => undefined);
    return directoriesSet;
  }

  async close(): Promise<void> {
    this.#state = 'closed';
    await this.#setting;
    await this.#closeWhere(() => true);
  }

  async #setDirectories(wanted: ReadonlyMap<string, WatchedDirectory>): Promise<readonly string[]> {
    // Closed first, for the same reason as a handle whose directory is gone (see parcel-watch.ts).
    await this.#closeWhere((key) => !wanted.has(key) || !this.#isWatched(key));
    const opened: string[] = [];
    for (const [key, directory] of wanted) {
      if (this.#isWatched(key)) continue;
      if (this.#state !== 'open') break;
      const watch = await this.#open(directory);
      this.#watches.set(key, watch);
      if (watch) opened.push(directory.path);
    }
    return opened;
  }

  #isIntact(): boolean {
    const now = this.#clock.monotonic();
    const missed = [...this.#trees.values()].some(({ coverage }) => coverage.again(now));
    return !missed && [...this.#watches.values()].every((watch) => !watch?.gone);
  }

  /** The native watches that these directories need, by key: one for each, or one for a whole tree. */
  #watchesFor(directories: readonly WatchedDirectory[]): Map<string, WatchedDirectory> {
    const wanted = new Map<string, WatchedDirectory>();
    const trees = new Map<string, WatchedDirectory[]>();
    for (const directory of directories) {
      const { tree } = directory;
      if (!tree) wanted.set(keyOf(directory), directory);
      else if (trees.has(tree.root)) trees.get(tree.root)?.push(directory);
      else trees.set(tree.root, [directory]);
    }
    for (const [root, members] of trees) {
      const top = members.find(({ path }) => path === root);
      if (top) wanted.set(`${keyOf(top)} ${this.#generation(root, members)}`, top);
    }
    return wanted;
  }

  /** A new value if parcel may have missed a directory of the tree, so that the tree is opened again. */
  #generation(root: string, members: readonly WatchedDirectory[]): number {
    const tree = this.#trees.get(root) ?? { coverage: new TreeCoverage(root), generation: 0 };
    this.#trees.set(root, tree);
    const isMissed = tree.coverage.setDirectories(members, this.#clock.monotonic());
    if (isMissed && process.platform === 'linux') tree.generation += 1;
    return tree.generation;
  }

  #isWatched(key: string): boolean {
    return this.#watches.has(key) && !this.#watches.get(key)?.gone;
  }

  async #closeWhere(unwanted: (key: string) => boolean): Promise<void> {
    for (const [key, watch] of [...this.#watches]) {
      if (!unwanted(key)) continue;
      this.#watches.delete(key);
      await watch?.close();
    }
  }

  async #open({ path, entries, isAncestor, tree }: WatchedDirectory): Promise<ParcelWatch | undefined> {
    try {
      if (tree) {
        const ignored = nativeGlobs(tree.ignore).map(sparingSwaps);
        const opening = this.#trees.get(tree.root);
        const watch = await openParcelWatch(path, ignored, this.#listener, {
          tree: true,
          newerThan: opening?.listing,
        });
        opening?.coverage.opened();
        if (opening) opening.listing = watch.listing;
        return watch;
      }
      return await openShallow(path, ignoredBut(entries), this.#listener);
    } catch (error) {
      if (error instanceof BackendError) throw error;
      const failure = (await this.#errorOf(path)) ?? movedMeanwhile(path, error);
      if (isAncestor && errnoOf(failure) === 'EACCES') return undefined;
      if (failure instanceof Error && hasMoved(failure)) throw failure;
      throw backendFailure(parcelName, path, failure ?? error);
    }
  }

  /**
   * The system's error for the directory: parcel's messages for a missing, a wrong and an unreadable directory have no
   * code.
   */
  async #errorOf(path: string): Promise<unknown> {
    try {
      const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
      const directory = await promises.open(pathForCall(path), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
      await directory.close();
      return undefined;
    } catch (error) {
      return error;
    }
  }
}

/**
 * Opens a directory in two steps, because parcel watches every subdirectory that is not ignored, and then reports
 * nothing about the subdirectory itself. First everything is ignored; parcel lists the directory and keeps the
 * (empty) listing while anything is subscribed. The real subscription uses that listing and adds one watch, on the
 * directory. Otherwise it would need a watch for each subdirectory, and fail for good if a subdirectory disappeared
 * between the listing and the watching.
 */
async function openShallow(path: string, ignored: RegExp, listener: ParcelListener): Promise<ParcelWatch> {
  const listing = await openParcelWatch(path, [/^/], silent);
  try {
    return await openParcelWatch(path, [ignored], listener);
  } finally {
    await listing.close();
  }
}

const silent: ParcelListener = { changed: () => undefined, died: () => undefined };

/**
 * Whether the directory was missing when parcel opened it, and exists now. (If the message is about something below
 * it, opening the directory again would not help.)
 */
function movedMeanwhile(path: string, error: unknown): Error | undefined {
  const { message } = error as Error;
  const missing = /Bad file descriptor|No such file or directory|Not a directory/.test(message);
  if (!missing || message.includes(`'${path}${sep}`)) return undefined;
  const moved = new Error(`ENOENT: the directory was moved while it was opened, watch '${path}'`, {
    cause: error,
  });
  return Object.assign(moved, { code: 'ENOENT', syscall: 'watch', path });
}

/** Two directories with the same key share a watch; one with a new key is opened again. */
function keyOf({ path, identity, entries, tree }: WatchedDirectory): string {
  return JSON.stringify([path, identity, entries && [...entries].sort(), tree?.ignore]);
}

/**
 * What causes no hint, relative to the directory: everything deeper than one level, and if only some entries matter,
 * all others. Subdirectories that are created later are watched by parcel until they are deleted, but their entries
 * are ignored.
 */
function ignoredBut(entries: readonly string[] | undefined): RegExp {
  if (!entries) return new RegExp(literal(sep));
  return new RegExp(`^(?!(?:${entries.map(literal).join('|')})$)`);
}

/**
 * The ignored paths, without the link that is swapped: a volume in a tree shows its keys even if its own names are
 * ignored, for example by `**\/.*`, and a swap may cause only an event about that link.
 */
function sparingSwaps({ source }: RegExp): RegExp {
  return new RegExp(`^(?!(?:.*[\\\\/])?${literal(DATA_LINK)}$)${source}`);
}

/**
 * The globs that a regular expression matches in linear time: a name with at most one star, at any depth or not, with
 * everything below it or not. Paths that other globs match are watched needlessly; the looks decide what counts.
 */
function nativeGlobs(globs: readonly string[]): RegExp[] {
  return globs.flatMap((glob) => {
    const begin = glob.startsWith('**/') ? 3 : 0;
    const end = glob.endsWith('/**') ? -3 : undefined;
    const parts = glob.slice(begin, end).split('*');
    if (parts.length > 2 || parts.some((part) => /[?[\]{}\\/]/.test(part))) return [];
    const name = parts.map(literal).join(`[^\\\\/]*`);
    return [new RegExp(`^${begin ? '(?:.*[\\\\/])?' : ''}${name}${end ? '(?:[\\\\/].*)?' : ''}$`)];
  });
}

/** With the escapes that JavaScript and C++'s `std::regex` have in common. */
function literal(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}
