import type { Effects } from './effects.js';

/** The chunk size for files that do not report their size, as in /proc. */
const CHUNK_BYTES = 65_536;

/** The content of every empty file. */
export const NO_BYTES = Buffer.alloc(0);

/**
 * Reads an open file from its beginning; undefined when it has more than `maxBytes`.
 *
 * @param size the size that the file reports, bytes, which is read in one call. 0: it may be empty, or not report its
 * size. Undefined: it is read to the end, in chunks.
 */
export function* readToEnd(fd: number, size?: number, maxBytes = Infinity): Effects<Buffer | undefined> {
  // For many empty files, allocating a chunk for each would take most of the time, and the chunk is kept with the
  // content.
  if (size === 0 && (yield ['read', fd, Buffer.allocUnsafe(1), 0, 1, 0]) === 0) return NO_BYTES;
  // Not zeroed: only what was read is returned.
  let buffer = Buffer.allocUnsafe(size === undefined || size === 0 ? CHUNK_BYTES : size);
  let length = 0;
  for (;;) {
    // Yielded directly: `call` would create a generator for each call.
    const count = (yield ['read', fd, buffer, length, buffer.length - length, length]) as number;
    length += count;
    if (length > maxBytes) return undefined;
    if (length === size && length === buffer.length) return buffer;
    if (count === 0) return Buffer.from(buffer.subarray(0, length));
    if (length === buffer.length) buffer = Buffer.concat([buffer, Buffer.allocUnsafe(CHUNK_BYTES)]);
  }
}
