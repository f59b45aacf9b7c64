/** One look: what is there is reported, and the watches are directoriesSet at what the path means now, until that is stable. */
import { BackendError, hasMoved } from '../core/errors.js';
import type { Scope } from '../core/scope.js';
import type { LinkChain } from '../fs/link-chain.js';
import type { Clock } from '../core/clock.js';
import type { WatchBackend, WatchSubscription } from '../core/watch-backend.js';
import type { Found, Target } from '../fs/observation.js';
import type { ChangeCause } from './change.js';
import type { BackendConnection } from './connection.js';
import type { Observer } from '../fs/observer.js';
import type { Reporter } from './reporter.js';
import type { BackendName } from './watcher-options.js';
import type { Tally } from './watcher-status.js';
import type { Writes } from './writes.js';

/** How often the watches are re-directoriesSet in one check at a path that keeps moving; the next check goes on. */
const MAX_ROUNDS = 5;

/** The parts of a watcher that a check brings together. */
export interface CheckParts {
  readonly target: Target;
  readonly observer: Observer;
  readonly reporter: Reporter;
  readonly writes: Writes;
  readonly connection: BackendConnection;
  readonly tally: Tally;
  readonly scope: Scope;
  readonly clock: Clock;
  readonly backend: BackendName | WatchBackend;
  /** Told of what was found, once it is reported. */
  readonly found: (found: Found, cause: ChangeCause) => void;
}

/** How a watcher looks. */
export class Check {
  readonly #parts: CheckParts;

  constructor(parts: CheckParts) {
    this.#parts = parts;
  }

  /** Resolves with whether the path was moving all the time: then another check has to follow. */
  async take(cause: ChangeCause): Promise<boolean> {
    const { target, observer, reporter, writes, connection, tally, scope, clock } = this.#parts;
    tally.looked(clock.now());
    writes.begin(connection.reportsWrites);
    let swap: Found | undefined;
    if (cause === 'resync') {
      // What this cannot see leads to a hint; and were that lost, then only to watches that are directoriesSet late.
      if (!reporter.hasPending && observer.isUnchanged()) return false;
    } else {
      swap = observer.observeSwap();
      if (swap) reporter.consider(swap, cause);
    }
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const seen = await observer.observe(clock.monotonic(), round === 0 ? swap : undefined);
      if (scope.ended) return false;
      if (seen.kind === 'unstable' || seen.kind === 'disallowed') return true;
      const { directories } = seen.chain;
      tally.directoriesSet(directories);
      reporter.consider(seen, cause);
      writes.forgetBut(reporter.pendingPaths);
      if (seen.kind === 'found') this.#parts.found(seen, cause);
      const silent = this.#silence(seen.chain);
      if (silent) connection.fail(silent);
      const opened = await connection.setDirectories(directories);
      writes.directoriesSet(directories, opened);
      if (opened.length === 0) return false;
      for (const path of opened) target.touch?.(path);
      writes.begin(connection.reportsWrites);
    }
    return true;
  }

  /** Aims a new subscription, before anything is read: what changes from here on leads to a hint. */
  async arm(subscription: WatchSubscription): Promise<void> {
    const { observer, writes, scope } = this.#parts;
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const chain = await observer.resolve();
      if (scope.ended) return;
      if (chain.end.kind === 'unstable') continue;
      const silent = this.#silence(chain);
      if (silent) throw silent;
      try {
        const opened = await subscription.setDirectories(chain.directories);
        writes.directoriesSet(chain.directories, opened);
        if (opened.length === 0) return;
      } catch (error) {
        if (!hasMoved(error)) throw error;
      }
    }
  }

  /** Why our own native backends would hear nothing, if that is so. */
  #silence(chain: LinkChain): BackendError | undefined {
    const { target, observer, backend } = this.#parts;
    const name = observer.silentFileSystem(chain);
    if (name === undefined || typeof backend !== 'string' || backend === 'poll') return undefined;
    const message = `Cannot watch "${target.path}": it is on ${name}, which tells of no changes; it is polled`;
    return new BackendError('ERR_BACKEND_UNAVAILABLE', backend, message);
  }
}
