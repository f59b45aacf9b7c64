/**
 * Which calls of a write are made synchronously. A trip through the thread pool costs as much as writing a small file
 * to memory; but a call that waits for a disk, or for a server that is down, must not block the event loop.
 */
import { constants } from 'node:fs';

import { kindAt } from '../fs/file-system-kind.js';
import type { Call, Effects } from '../fs/effects.js';
import { HeldDirectory } from './held-directory.js';

const { O_DIRECTORY = 0 } = constants as Partial<typeof constants>;

/** What a local disk answers from memory. Any change may wait for its journal. */
const LOOKUPS: ReadonlySet<Call[0]> = new Set<Call[0]>(['lstat', 'stat', 'fstat', 'readlink', 'close']);

/** A directory of this size is one block on a disk, or 200 entries in memory (20 bytes each). */
const SMALL_DIRECTORY_BYTES = 4096n;

/** Copying this much takes some ten microseconds; more is copied outside the event loop. */
const SMALL_BYTES = 65_536;

/** File systems on which entries can be reached through descriptors. It never changes, and is checked once for each. */
const proven = new WeakSet<object>();

/** Learns which file system a directory is on, and decides for each call whether it may be made synchronously. */
export class SynchronousCalls {
  #kind: 'memory' | 'disk' | 'unknown' = 'unknown';
  /** A small directory, as it is listed. */
  #small: string | undefined;
  readonly #fs: object;
  readonly #platform: NodeJS.Platform;

  /**
   * @param fs the file system port that makes the calls.
   * @param platform on anything but Linux no call is made synchronously.
   */
  constructor(fs: object, platform: NodeJS.Platform = process.platform) {
    this.#fs = fs;
    this.#platform = platform;
  }

  /** Opens the directory of the calls that follow; see `HeldDirectory.open`. */
  *enter(path: string, { readable = true } = {}): Effects<HeldDirectory> {
    yield* this.#classify(path);
    const directory = yield* HeldDirectory.open(path, { readable, isProven: proven.has(this.#fs) });
    if (directory.isByDescriptor) proven.add(this.#fs);
    this.#noteSize(directory);
    return directory;
  }

  /** The calls that follow are in this directory. */
  *entered(directory: HeldDirectory): Effects<void> {
    yield* this.#classify(directory.at('.'));
    this.#noteSize(directory);
  }

  /** To be given to `runAsync`. */
  readonly allows = (step: Call): boolean => {
    if (step[0] === 'readdir') return step[1] === this.#small;
    switch (this.#kind) {
      case 'unknown':
        return false;
      case 'disk':
        // Opening a directory is a lookup, too.
        return LOOKUPS.has(step[0]) || (step[0] === 'open' && (step[2] & O_DIRECTORY) !== 0);
      case 'memory':
        if (step[0] === 'read' || step[0] === 'write') return step[4] <= SMALL_BYTES;
        return true;
    }
  };

  *#classify(path: string): Effects<void> {
    this.#kind = 'unknown';
    this.#small = undefined;
    if (this.#platform !== 'linux') return;
    try {
      const kind = yield* kindAt(path, this.#platform);
      if (kind?.place === 'memory' || kind?.place === 'disk') this.#kind = kind.place;
    } catch {
      // Missing or unreadable: opening it gives the error.
    }
  }

  #noteSize(directory: HeldDirectory): void {
    const isLocal = this.#kind !== 'unknown';
    if (isLocal && directory.stat.size <= SMALL_DIRECTORY_BYTES) this.#small = directory.at('.');
  }
}
