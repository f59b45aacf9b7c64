import { number } from '../core/options/options.js';

/** Limits on what is read. */
export interface ReadLimits {
  /** False: no contents are read, and none of the limits is said to be exceeded. Default true. */
  readonly content?: boolean;
  /** The maximum size of one file, bytes. */
  readonly maxContentBytes: number;
  /** The maximum total size of all files, bytes. */
  readonly maxTotalBytes: number;
  /** If there are more files than this, contents are not read. */
  readonly maxFiles: number;
}

/** The options that limit what is read; see `ReadLimits`. */
export const READ_LIMITS = {
  // The API server accepts no larger ConfigMap or Secret. Buffers end at 2 GiB.
  maxContentBytes: number(1_048_576, { max: 2 ** 31 - 1, unit: 'bytes' }),
  // Sixty-four of the largest ConfigMaps: more than any projected volume contains, and no risk to the memory of a
  // process.
  maxTotalBytes: number(64 * 1_048_576, { unit: 'bytes' }),
  // Reading a file takes some 10 µs, so 16,384 files take a fifth of a second.
  maxFiles: number(16_384),
};

/** Why the content of a single file is not read, in words; undefined if it is. */
export function limitOf(size: number, { maxContentBytes }: ReadLimits): string | undefined {
  return size > maxContentBytes
    ? `it is larger than maxContentBytes (${maxContentBytes}): it is compared by inode and timestamps, and its contents are not read`
    : undefined;
}

/** What is kept of files that are not too large. */
export type Kept = 'contents' | 'digests' | 'identities';

/** The number of files and of their bytes. */
export class ReadTotals {
  readonly #limits: ReadLimits;
  #files = 0;
  /** Files larger than `maxContentBytes`. */
  #large = 0;
  /** The total size of the other files, bytes. */
  #bytes = 0;

  constructor(limits: ReadLimits) {
    this.#limits = limits;
  }

  /** A file of this size was added, or removed. */
  count(size: number, by: 1 | -1): void {
    this.#files += by;
    if (size > this.#limits.maxContentBytes) this.#large += by;
    else this.#bytes += by * size;
  }

  get kept(): Kept {
    const { content, maxFiles, maxTotalBytes } = this.#limits;
    if (content === false || this.#files > maxFiles) return 'identities';
    return this.#bytes > maxTotalBytes ? 'digests' : 'contents';
  }

  /** The exceeded limit, in words that do not depend on the number of files; undefined if none is. */
  get limited(): string | undefined {
    const { content, maxFiles, maxContentBytes, maxTotalBytes } = this.#limits;
    if (content === false) return undefined;
    switch (this.kept) {
      case 'identities':
        return `it has more files than maxFiles (${maxFiles}): they are compared by inode and timestamps, and contents are not read`;
      case 'digests':
        return `its files have more bytes than maxTotalBytes (${maxTotalBytes}): only their digests are kept`;
      case 'contents':
        return this.#large > 0
          ? `some of its files are larger than maxContentBytes (${maxContentBytes}): they are compared by inode and timestamps, and their contents are not read`
          : undefined;
    }
  }
}
