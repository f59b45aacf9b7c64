import { number } from '../../core/options.js';
import type { FileSystem } from '../../core/file-system.js';
import type { ReadLimits } from '../observation.js';

/** The options that bound what is read; see `ReadLimits`. */
export const READ_LIMITS = {
  // The API server accepts no larger ConfigMap or Secret. Buffers end at 2 GiB.
  maxContentBytes: number(1_048_576, { max: 2 ** 31 - 1, unit: 'bytes' }),
  // Sixty-four of the largest ConfigMaps: more than any projected volume holds, and no risk to the memory of a
  // process.
  maxTotalBytes: number(64 * 1_048_576, { unit: 'bytes' }),
  // Reading a file takes some 10 µs, during which nothing else happens: 16 384 files take a fifth of a second.
  maxFiles: number(16_384),
};

/** The calls that observing a target makes. */
export const READ_CALLS = [
  'lstat',
  'readlink',
  'readdir',
  'scandir',
  'opendir',
  'readEntries',
  'closedir',
  'open',
  'fstat',
  'read',
  'close',
] as const satisfies readonly (keyof FileSystem)[];

/** What is kept of each file that is not too large, and the limit that is the reason, in words: the same for any number. */
export interface Limited {
  readonly kept: 'contents' | 'digests' | 'identities';
  readonly limited: string | undefined;
}

/** How many files there are and how many bytes they hold, kept up to date as files come and go. */
export class ReadTotals {
  readonly #limits: ReadLimits;
  #files = 0;
  /** Files larger than `maxContentBytes`. */
  #large = 0;
  /** The bytes of the others. */
  #bytes = 0;

  /** @param from the totals to begin with. */
  constructor(limits: ReadLimits, from?: ReadTotals) {
    this.#limits = limits;
    if (from) [this.#files, this.#large, this.#bytes] = [from.#files, from.#large, from.#bytes];
  }

  /** A file of this size has come; undefined: there is none. */
  add(size: number | undefined): void {
    this.#count(size, 1);
  }

  /** A file of this size has gone. */
  remove(size: number | undefined): void {
    this.#count(size, -1);
  }

  /** What the limits allow. */
  get limited(): Limited {
    const { maxFiles, maxContentBytes, maxTotalBytes } = this.#limits;
    if (this.#files > maxFiles) {
      const limited = `it holds more files than maxFiles (${maxFiles}): they are compared by inode and timestamps, and contents are not read`;
      return { kept: 'identities', limited };
    }
    if (this.#bytes > maxTotalBytes) {
      const limited = `its files hold more bytes than maxTotalBytes (${maxTotalBytes}): only their digests are kept`;
      return { kept: 'digests', limited };
    }
    const limited =
      this.#large > 0
        ? `some of its files are larger than maxContentBytes (${maxContentBytes}): they are compared by inode and timestamps, and their contents are not read`
        : undefined;
    return { kept: 'contents', limited };
  }

  #count(size: number | undefined, by: 1 | -1): void {
    if (size === undefined) return;
    this.#files += by;
    if (size > this.#limits.maxContentBytes) this.#large += by;
    else this.#bytes += by * size;
  }
}

/** What the limits allow for files of these sizes, bytes. */
export function limitReading(sizes: Iterable<number>, limits: ReadLimits): Limited {
  const totals = new ReadTotals(limits);
  for (const size of sizes) totals.add(size);
  return totals.limited;
}
