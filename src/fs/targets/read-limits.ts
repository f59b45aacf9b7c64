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
  'open',
  'fstat',
  'read',
  'close',
] as const satisfies readonly (keyof FileSystem)[];

/** What is kept of each file that is not too large, and the limit that is the reason, in words. */
export interface Limited {
  readonly kept: 'contents' | 'digests' | 'identities';
  readonly limited: string | undefined;
}

/** What the limits allow for files of these sizes, bytes. */
export function limitReading(sizes: readonly number[], limits: ReadLimits): Limited {
  const { maxFiles, maxContentBytes, maxTotalBytes } = limits;
  if (sizes.length > maxFiles) {
    const limited = `it holds ${sizes.length} files, more than maxFiles (${maxFiles}): they are compared by inode and timestamps, and contents are not read`;
    return { kept: 'identities', limited };
  }
  const small = sizes.filter((size) => size <= maxContentBytes);
  const total = small.reduce((sum, size) => sum + size, 0);
  if (total > maxTotalBytes) {
    const limited = `its files hold ${total} bytes, more than maxTotalBytes (${maxTotalBytes}): only their digests are kept`;
    return { kept: 'digests', limited };
  }
  const large = sizes.length - small.length;
  const limited =
    large > 0
      ? `${large} of its files are larger than maxContentBytes (${maxContentBytes}): they are compared by inode and timestamps, and their contents are not read`
      : undefined;
  return { kept: 'contents', limited };
}
