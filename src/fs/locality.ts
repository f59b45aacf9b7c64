/**
 * Which file systems may be called synchronously. A call on a cached local file takes a few microseconds, and
 * 50–100 through the thread pool; a synchronous call on a dead NFS or FUSE server blocks the event loop for ever.
 * So everything is asynchronous until `statfs` has identified the file systems, and only those known to be local
 * are called synchronously.
 */
import { kindAt } from './file-system-kind.js';
import type { LinkChain } from './link-chain.js';
import type { Effects } from './effects.js';

/** What is known of the file systems that a path leads through. */
export class Locality {
  /** Mounts, by the identity of the directory at which they begin: a local one may be entered synchronously. */
  readonly #local = new Map<string, true>();
  readonly #classified = new Map<string, string | undefined>();
  readonly #platform: NodeJS.Platform;

  /** @param platform anything but Linux: nothing is known to be local. */
  constructor(platform: NodeJS.Platform = process.platform) {
    this.#platform = platform;
  }

  /** The mounts that may be entered synchronously. */
  get local(): ReadonlyMap<string, unknown> {
    return this.#local;
  }

  /** Whether the whole chain may be resolved synchronously. */
  isLocal({ mounts, end }: LinkChain): boolean {
    return end.kind !== 'unstable' && [...mounts.keys()].every((identity) => this.#local.has(identity));
  }

  /** The name of a file system on the chain that reports no events, if there is one. */
  silentFileSystem({ mounts }: LinkChain): string | undefined {
    for (const identity of mounts.keys()) {
      const name = this.#classified.get(identity);
      if (name !== undefined) return name;
    }
    return undefined;
  }

  /** Identifies the mounts of the chain that are not known yet. To be run asynchronously. */
  *classify({ mounts }: LinkChain): Effects<void> {
    for (const [identity, path] of mounts) {
      if (this.#classified.has(identity)) continue;
      try {
        const kind = yield* kindAt(path, this.#platform);
        this.#classified.set(identity, kind?.place === 'remote' ? kind.name : undefined);
        if (kind && kind.place !== 'remote') this.#local.set(identity, true);
      } catch {
        // Gone or unreadable: it stays unknown, so it is called asynchronously and identified by the next check.
      }
    }
  }
}
