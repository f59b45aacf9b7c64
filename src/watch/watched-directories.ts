/**
 * The directories that are watched for one target: those consulted while its path is resolved.
 *
 * | directories                      | while the connection is | then                                                          |
 * |----------------------------------|-------------------------|---------------------------------------------------------------|
 * | of a new subscription            | being opened            | they are set before anything is read, until none of them is   |
 * |                                  |                         | new: later changes cause a hint                               |
 * | that a check has found           | up                      | they are set; those not watched before are to be checked again |
 * | on a file system without events  | being opened            | this backend is not suited                                    |
 * | the same                         | up                      | it is suspended: the target is polled                         |
 * | on file systems with events      | suspended               | it is resumed                                                 |
 */
import { BackendError } from '../core/backend-error.js';
import { hasMoved } from '../core/errno.js';
import type { Scope } from '../core/scope.js';
import type { WatchBackend, WatchedDirectory, WatchSubscription } from '../core/watch-backend.js';
import type { LinkChain } from '../fs/link-chain.js';
import type { Observer } from '../fs/observer.js';
import type { BackendConnection } from './connection.js';
import type { InPlaceWrites } from './report/in-place-writes.js';

/** How often the directories are set again because some of them are new. */
export const MAX_ROUNDS = 5;

const NO_DIRECTORIES: readonly WatchedDirectory[] = [];

/** The watched directories of one target. */
export class WatchedDirectories {
  readonly #path: string;
  readonly #observer: Observer;
  readonly #writes: InPlaceWrites;
  readonly #scope: Scope;
  #directories = NO_DIRECTORIES;

  /** @param path the watched path, for messages. */
  constructor(path: string, observer: Observer, writes: InPlaceWrites, scope: Scope) {
    this.#path = path;
    this.#observer = observer;
    this.#writes = writes;
    this.#scope = scope;
  }

  /** Those that the last check has found. */
  get paths(): string[] {
    return this.#directories.map(({ path }) => path);
  }

  /** Watches what a check has found. Returns the paths that were not watched before. */
  async set(chain: LinkChain, connection: BackendConnection): Promise<readonly string[]> {
    const { backend } = connection;
    this.#directories = chain.directories;
    const silence = backend && this.#silence(chain, backend);
    if (silence) connection.suspend(silence);
    else if (this.#observer.silentFileSystem(chain) === undefined) connection.resume();
    const opened = await connection.setDirectories(chain.directories);
    this.#writes.directoriesSet(chain.directories, opened);
    return opened;
  }

  /**
   * Sets the directories of a new subscription.
   * @throws {BackendError} when this backend would report no events there, or cannot watch them.
   */
  async arm(subscription: WatchSubscription, backend: WatchBackend): Promise<void> {
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const chain = await this.#observer.resolve();
      if (this.#scope.ended) return;
      if (chain.end.kind === 'unstable') continue;
      const silence = this.#silence(chain, backend);
      if (silence) throw silence;
      try {
        const opened = await subscription.setDirectories(chain.directories);
        this.#writes.directoriesSet(chain.directories, opened);
        if (opened.length === 0) return;
      } catch (error) {
        if (!hasMoved(error)) throw error;
      }
    }
  }

  /** Why this backend would report no events there, if so. */
  #silence(chain: LinkChain, { name, needsKernelEvents = false }: WatchBackend): BackendError | undefined {
    const fileSystem = needsKernelEvents ? this.#observer.silentFileSystem(chain) : undefined;
    if (fileSystem === undefined) return undefined;
    const message = `Cannot watch "${this.#path}": it is on ${fileSystem}, which gives no events; it is polled`;
    return new BackendError('ERR_BACKEND_NO_EVENTS', name, message);
  }
}
