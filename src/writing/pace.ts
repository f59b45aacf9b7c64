/**
 * Which calls are made at once. One trip through the thread pool costs as much as writing a small file to
 * memory; but a call that waits for a disk, or for a server that is dead, must not stop the event loop.
 */
import { call, type Call, type Steps } from '../steps.js';

/** `statfs` magic numbers (`statfs(2)`). Some architectures sign-extend them. */
const MEMORY = new Set([
  0x01021994, // tmpfs: Secrets, projected volumes, emptyDir with medium Memory
  0x858458f6, // ramfs
]);
const DISK = new Set([
  0xef53, // ext2, ext3, ext4
  0x58465342, // xfs
  0x9123683e, // btrfs
  0x794c7630, // overlayfs: a container's root
  0xf2f52010, // f2fs
  0x2fc12fc1, // zfs
  0xca451a4e, // bcachefs
]);

/** What a local disk answers from memory. All that changes it may wait for its journal. */
const LOOKUPS: ReadonlySet<Call[0]> = new Set<Call[0]>(['lstat', 'stat', 'fstat', 'readlink', 'close']);

/** Copying this much takes some ten microseconds; more is copied outside the event loop. */
const SMALL_BYTES = 65_536;

/** Learns what a file system is, and answers for each call whether it may be made at once. */
export class Pace {
  #kind: 'memory' | 'disk' | 'unknown' = 'unknown';
  readonly #canTell: boolean;

  /** @param platform the numbers mean something on Linux only; elsewhere nothing is made at once. */
  constructor(platform: NodeJS.Platform = process.platform) {
    this.#canTell = platform === 'linux';
  }

  /** From now on the work is in this directory. */
  *enter(directory: string): Steps<void> {
    this.leave();
    if (!this.#canTell) return;
    try {
      const type = (yield* call('statfs', directory)).type >>> 0;
      if (MEMORY.has(type)) this.#kind = 'memory';
      else if (DISK.has(type)) this.#kind = 'disk';
    } catch {
      // Missing or unreadable: the call that needs it will say so.
    }
  }

  /** From now on the work is somewhere unknown. */
  leave(): void {
    this.#kind = 'unknown';
  }

  /** To be given to `runAsync`. */
  readonly atOnce = (step: Call): boolean => {
    switch (this.#kind) {
      case 'unknown':
        return false;
      case 'disk':
        return LOOKUPS.has(step[0]);
      case 'memory':
        if (step[0] === 'read' || step[0] === 'write') return step[4] <= SMALL_BYTES;
        // A directory may be of any size; and so each write lets the event loop turn.
        return step[0] !== 'readdir';
    }
  };
}
