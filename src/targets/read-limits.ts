import { number } from '../options.js';

/** The options that bound what is read; see `ReadLimits`. */
export const READ_LIMITS = {
  // The API server accepts no larger ConfigMap or Secret. Buffers end at 2 GiB.
  maxContentBytes: number(1_048_576, { max: 2 ** 31 - 1, unit: 'bytes' }),
  // Sixty-four of the largest ConfigMaps: more than any projected volume holds, and no process dies of it.
  maxTotalBytes: number(64 * 1_048_576, { unit: 'bytes' }),
  // Reading one takes some 10 µs, and for that long nothing else happens: 16 384 are a fifth of a second.
  maxFiles: number(16_384),
};
