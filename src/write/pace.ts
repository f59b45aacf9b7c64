/**
 * Which calls are made at once. One trip through the thread pool costs as much as writing a small file to
 * memory; but a call that waits for a disk, or for a server that is dead, must not stop the event loop.
 */
import { fileSystemKind } from '../fs/file-system-kind.js';
import { call, type Call, type Effects } from '../fs/effects.js';

/** What a local disk answers from memory. All that changes it may wait for its journal. */
const LOOKUPS: ReadonlySet<Call[0]> = new Set<Call[0]>(['lstat', 'stat', 'fstat', 'readlink', 'close']);

/** A directory of this size is one block on a disk, and 200 entries in memory (20 bytes each): a lookup like others. */
const SMALL_DIRECTORY_BYTES = 4096n;

/** Copying this much takes some ten microseconds; more is copied outside the event loop. */
const SMALL_BYTES = 65_536;

/** Learns what a file system is, and answers for each call whether it may be made at once. */
export class Pace {
  #kind: 'memory' | 'disk' | 'unknown' = 'unknown';
  /** The directory that is listed at once. */
  #small: string | undefined;
  readonly #platform: NodeJS.Platform;

  /** @param platform only Linux tells; elsewhere nothing is made at once. */
  constructor(platform: NodeJS.Platform = process.platform) {
    this.#platform = platform;
  }

  /** From now on the work is in this directory. */
  *enter(directory: string): Effects<void> {
    this.leave();
    if (this.#platform !== 'linux') return;
    try {
      const kind = fileSystemKind((yield* call('statfs', directory)).type, this.#platform);
      if (kind?.place !== 'memory' && kind?.place !== 'disk') return;
      this.#kind = kind.place;
      const { size } = yield* call('stat', directory);
      if (size <= SMALL_DIRECTORY_BYTES) this.#small = directory;
    } catch {
      // Missing or unreadable: the call that needs it will say so.
    }
  }

  /** From now on the work is somewhere unknown. */
  leave(): void {
    this.#kind = 'unknown';
    this.#small = undefined;
  }

  /** To be given to `runAsync`. */
  readonly atOnce = (step: Call): boolean => {
    if (step[0] === 'readdir') return step[1] === this.#small;
    switch (this.#kind) {
      case 'unknown':
        return false;
      case 'disk':
        return LOOKUPS.has(step[0]);
      case 'memory':
        if (step[0] === 'read' || step[0] === 'write') return step[4] <= SMALL_BYTES;
        return true;
    }
  };
}
