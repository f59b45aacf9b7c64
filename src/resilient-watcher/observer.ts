import { resolveChain, type LinkChain } from '../link-chain.js';
import { Locality } from '../locality.js';
import type { FileSystem } from '../ports.js';
import { isUnchanged, lookAtFile, lookAtSwap, type FileSighting, type Sighting } from '../snapshot.js';
import { runAsync, runSync } from '../steps.js';
import { sharedTurn } from './shared-turn.js';

/**
 * A signature vouches for the content only if that was read at least this long after the signature was first
 * seen, ms: two writes within one tick of the file system's clock (2 s on FAT, 1 s on old ext) look alike.
 */
const COARSEST_TIMESTAMP_MS = 2_000;

/** What an observer needs. */
export interface ObserverOptions {
  readonly path: string;
  readonly fs: FileSystem;
  readonly maxContentBytes: number;
}

/** Looks at one file: synchronously where that is safe, and without reading again what cannot have changed. */
export class Observer {
  readonly #options: ObserverOptions;
  readonly #locality = new Locality();
  #sync: FileSystem['sync'];
  #last: { readonly sighting: FileSighting; readonly since: number; readonly trusted: boolean } | undefined;

  constructor(options: ObserverOptions) {
    this.#options = options;
  }

  /** Every file system on the way is local, so that an observation ends within microseconds. */
  get isLocal(): boolean {
    return this.#sync !== undefined;
  }

  /** What is there. @param now monotonic ms */
  async observe(now: number): Promise<Sighting> {
    const seen = await this.#observe();
    if (seen.kind === 'file') this.#learn(seen, now);
    else this.#last = undefined;
    return seen;
  }

  /** Whether, as far as that shows at once, all is as it was when last observed. Costs little. */
  isUnchanged(): boolean {
    if (!this.#sync || !this.#last?.trusted) return false;
    return runSync(isUnchanged(this.#options.path, this.#last.sighting), this.#sync, sharedTurn.ask);
  }

  /**
   * A swap, if that is what has happened, sooner than `observe()` would tell; which has to follow. Only where it
   * is safe at once.
   */
  observeSwap(): FileSighting | undefined {
    const { path, maxContentBytes } = this.#options;
    if (!this.#sync || !this.#last || this.#last.sighting.chain.hops.size === 0) return undefined;
    return runSync(lookAtSwap(path, maxContentBytes, this.#last.sighting.chain), this.#sync, sharedTurn.ask);
  }

  /** What the path means, without reading anything. */
  async resolve(): Promise<LinkChain> {
    if (this.#sync) {
      const chain = runSync(resolveChain(this.#options.path, this.#locality.local), this.#sync);
      if (chain.end.kind !== 'unfamiliar') return chain;
    }
    const chain = await runAsync(resolveChain(this.#options.path), this.#options.fs);
    await this.#classify(chain);
    return chain;
  }

  /** The name of a file system on the way that gives no events, if there is one. */
  silentFileSystem(chain: LinkChain): string | undefined {
    return this.#locality.silentFileSystem(chain);
  }

  async #observe(): Promise<Sighting> {
    const { path, fs, maxContentBytes } = this.#options;
    const known = this.#last?.trusted ? this.#last.sighting : undefined;
    if (this.#sync) {
      const look = lookAtFile(path, maxContentBytes, known, this.#locality.local);
      const seen = runSync(look, this.#sync, sharedTurn.ask);
      if (seen.kind !== 'unfamiliar') return seen;
    }
    const seen = await runAsync(lookAtFile(path, maxContentBytes, known), fs);
    await this.#classify(seen.chain);
    return seen;
  }

  async #classify(chain: LinkChain): Promise<void> {
    const { fs } = this.#options;
    await runAsync(this.#locality.classify(chain), fs);
    this.#sync = this.#locality.isLocal(chain) ? fs.sync : undefined;
  }

  /** Keeps what a signature stands for, and whether it can be trusted yet. */
  #learn(sighting: FileSighting, now: number): void {
    const last = this.#last;
    if (last?.sighting.signature !== sighting.signature) {
      this.#last = { sighting, since: now, trusted: false };
    } else {
      const trusted = last.trusted || now - last.since >= COARSEST_TIMESTAMP_MS;
      this.#last = { sighting, since: last.since, trusted };
    }
  }
}
