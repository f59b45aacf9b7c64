import type { Effects } from './effects.js';

/** The chunk size for files that do not report their size, as in /proc. */
const CHUNK_BYTES = 65_536;

/**
 * Reads an open file from its beginning; undefined when it has more than `maxBytes`.
 *
 * @param size the size that the file reports, bytes, which is read in one call. 0: read to the end, in chunks.
 */
export function* readToEnd(fd: number, size = 0, maxBytes = Infinity): Effects<Buffer | undefined> {
  // Not zeroed: only what was read is returned.
  let buffer = Buffer.allocUnsafe(size === 0 ? CHUNK_BYTES : size);
  let length = 0;
  for (;;) {
    // Yielded directly: `call` would create a generator for each call.
    const count = (yield ['read', fd, buffer, length, buffer.length - length, length]) as number;
    length += count;
    if (length > maxBytes) return undefined;
    if (length === size && length === buffer.length) return buffer;
    if (count === 0) return buffer.subarray(0, length);
    if (length === buffer.length) buffer = Buffer.concat([buffer, Buffer.allocUnsafe(CHUNK_BYTES)]);
  }
}
