import type { Effects } from './effects.js';

/** Asked for at a time when a file does not tell its size, as in /proc. */
const CHUNK_BYTES = 65_536;

/**
 * The bytes of an open file from its beginning; undefined when there are more than `maxBytes`.
 *
 * @param size what the file says it has, bytes: as many are read in one call. 0: to the end, in chunks.
 */
export function* readToEnd(fd: number, size = 0, maxBytes = Infinity): Effects<Buffer | undefined> {
  // Not zeroed: only what was read is returned.
  let buffer = Buffer.allocUnsafe(size === 0 ? CHUNK_BYTES : size);
  let length = 0;
  for (;;) {
    // Yielded as it is: `call` would make a generator for each call.
    const count = (yield ['read', fd, buffer, length, buffer.length - length, length]) as number;
    length += count;
    if (length > maxBytes) return undefined;
    if (length === size && length === buffer.length) return buffer;
    if (count === 0) return buffer.subarray(0, length);
    if (length === buffer.length) buffer = Buffer.concat([buffer, Buffer.allocUnsafe(CHUNK_BYTES)]);
  }
}
