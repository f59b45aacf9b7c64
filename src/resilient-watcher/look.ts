/** One look: what is there is reported, and the watches are aimed at what the path means now, until that is stable. */
import { BackendError, hasMoved } from '../errors.js';
import type { Scope } from '../lifecycle.js';
import type { LinkChain } from '../link-chain.js';
import type { Clock, WatchBackend, WatchSubscription } from '../ports.js';
import type { Found, Target } from '../sighting.js';
import type { ChangeCause } from './change.js';
import type { BackendConnection } from './connection.js';
import type { Observer } from './observer.js';
import type { Reporter } from './reporter.js';
import type { BackendName } from './watcher-options.js';
import type { Tally } from './watcher-status.js';
import type { Writes } from './writes.js';

/** How often the watches are re-aimed in one look at a path that keeps moving; the next look goes on. */
const MAX_ROUNDS = 5;

/** The parts of a watcher that a look brings together. */
export interface LookParts {
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
export class Look {
  readonly #parts: LookParts;

  constructor(parts: LookParts) {
    this.#parts = parts;
  }

  /** Resolves with whether the path was moving all the time: then another look has to follow. */
  async take(cause: ChangeCause): Promise<boolean> {
    const { target, observer, reporter, writes, connection, tally, scope, clock } = this.#parts;
    tally.looked(clock.now());
    writes.begin(connection.tellsWrites);
    let swap: Found | undefined;
    if (cause === 'backstop') {
      // What this cannot see leads to a hint; and were that lost, then only to watches that are aimed late.
      if (!reporter.inDoubt && observer.isUnchanged()) return false;
    } else {
      swap = observer.observeSwap();
      if (swap) reporter.consider(swap, cause);
    }
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const seen = await observer.observe(clock.monotonic(), round === 0 ? swap : undefined);
      if (scope.ended) return false;
      if (seen.kind === 'moving' || seen.kind === 'unfamiliar') return true;
      const { directories } = seen.chain;
      tally.aimed(directories);
      reporter.consider(seen, cause);
      writes.forgetBut(reporter.doubted);
      if (seen.kind === 'found') this.#parts.found(seen, cause);
      const silent = this.#silence(seen.chain);
      if (silent) connection.fail(silent);
      const opened = await connection.aim(directories);
      writes.aimed(directories, opened);
      if (opened.length === 0) return false;
      for (const path of opened) target.touch?.(path);
      writes.begin(connection.tellsWrites);
    }
    return true;
  }

  /** Aims a new subscription, before anything is read: what changes from here on leads to a hint. */
  async arm(subscription: WatchSubscription): Promise<void> {
    const { observer, writes, scope } = this.#parts;
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const chain = await observer.resolve();
      if (scope.ended) return;
      if (chain.end.kind === 'moving') continue;
      const silent = this.#silence(chain);
      if (silent) throw silent;
      try {
        const opened = await subscription.aim(chain.directories);
        writes.aimed(chain.directories, opened);
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
