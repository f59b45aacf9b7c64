/**
 * Which file systems may be asked synchronously. A call on a page-cached local file takes a few microseconds
 * and 50–100 through the thread pool; a call on a dead NFS or FUSE server takes for ever, and made
 * synchronously it takes the event loop with it. So everything is asynchronous until `statfs` has told what it
 * is, and only what is known to be local is ever asked synchronously.
 */
import type { LinkChain } from './link-chain.js';
import { call, type Steps } from './steps.js';

/** `statfs` magic numbers (`statfs(2)`) of file systems that answer from this machine. */
const LOCAL = new Set([
  0xef53, // ext2, ext3, ext4
  0x01021994, // tmpfs: Secrets and projected volumes
  0x58465342, // xfs
  0x9123683e, // btrfs
  0x794c7630, // overlayfs: a container's root
  0x858458f6, // ramfs
  0xf2f52010, // f2fs
  0x2fc12fc1, // zfs
  0xca451a4e, // bcachefs
  0x73717368, // squashfs
  0xe0f5e1e2, // erofs
  0x9fa0, // proc
  0x62656572, // sysfs
]);

/** File systems whose files change without the kernel here being told: no native event can be relied on. */
const REMOTE = new Map([
  [0x6969, 'NFS'],
  [0xff534d42, 'CIFS'],
  [0x517b, 'SMB'],
  [0xfe534d42, 'SMB2'],
  [0x65735546, 'FUSE'],
  [0x01021997, '9p'],
  [0x00c36400, 'Ceph'],
  [0x5346414f, 'AFS'],
  [0x0bd00bd0, 'Lustre'],
]);

/** What is known of the file systems a path leads through. */
export class Locality {
  /** Mounts, by the identity of the directory at which they begin: a local one may be entered synchronously. */
  readonly #local = new Map<string, true>();
  readonly #classified = new Map<string, string | undefined>();
  readonly #canTell: boolean;

  /** @param platform the numbers of `statfs` mean something on Linux only; elsewhere nothing is local. */
  constructor(platform: NodeJS.Platform = process.platform) {
    this.#canTell = platform === 'linux';
  }

  /** The mounts that may be entered synchronously. */
  get local(): ReadonlyMap<string, unknown> {
    return this.#local;
  }

  /** Whether the whole chain may be walked synchronously. */
  isLocal({ mounts, end }: LinkChain): boolean {
    return end.kind !== 'moving' && [...mounts.keys()].every((identity) => this.#local.has(identity));
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
  *classify({ mounts }: LinkChain): Steps<void> {
    if (!this.#canTell) return;
    for (const [identity, path] of mounts) {
      if (this.#classified.has(identity)) continue;
      try {
        // Some architectures sign-extend the number.
        const type = (yield* call('statfs', path)).type >>> 0;
        this.#classified.set(identity, REMOTE.get(type));
        if (LOCAL.has(type)) this.#local.set(identity, true);
      } catch {
        // Gone or unreadable: it stays unknown, so it is asked asynchronously, and classified at the next look.
      }
    }
  }
}
