/**
 * Which file systems may be asked synchronously. A call on a page-cached local file takes a few microseconds
 * and 50–100 through the thread pool; a call on a dead NFS or FUSE server takes for ever, and made
 * synchronously it takes the event loop with it. So everything is asynchronous until `statfs` has told what it
 * is, and only what is known to be local is ever asked synchronously.
 */
import { kindAt } from './file-system-kind.js';
import type { LinkChain } from './link-chain.js';
import type { Effects } from './effects.js';

/** What is known of the file systems a path leads through. */
export class Locality {
  /** Mounts, by the identity of the directory at which they begin: a local one may be entered synchronously. */
  readonly #local = new Map<string, true>();
  readonly #classified = new Map<string, string | undefined>();
  readonly #platform: NodeJS.Platform;

  /** @param platform only Linux tells; elsewhere nothing is local. */
  constructor(platform: NodeJS.Platform = process.platform) {
    this.#platform = platform;
  }

  /** The mounts that may be entered synchronously. */
  get local(): ReadonlyMap<string, unknown> {
    return this.#local;
  }

  /** Whether the whole chain may be walked synchronously. */
  isLocal({ mounts, end }: LinkChain): boolean {
    return end.kind !== 'unstable' && [...mounts.keys()].every((identity) => this.#local.has(identity));
  }

  /** The name of a file system on the chain that gives no events, if there is one. */
  silentFileSystem({ mounts }: LinkChain): string | undefined {
    for (const identity of mounts.keys()) {
      const name = this.#classified.get(identity);
      if (name !== undefined) return name;
    }
    return undefined;
  }

  /** Asks what the mounts of the chain are, those that are not known yet. To be run asynchronously. */
  *classify({ mounts }: LinkChain): Effects<void> {
    for (const [identity, path] of mounts) {
      if (this.#classified.has(identity)) continue;
      try {
        const kind = yield* kindAt(path, this.#platform);
        this.#classified.set(identity, kind?.place === 'remote' ? kind.name : undefined);
        if (kind && kind.place !== 'remote') this.#local.set(identity, true);
      } catch {
        // Gone or unreadable: it stays unknown, so it is asked asynchronously, and classified at the next check.
      }
    }
  }
}
