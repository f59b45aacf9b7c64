/** What is in files. */
import { constants, type BigIntStats } from 'node:fs';

import { call, type Effects } from '../fs/effects.js';

const CHUNK_BYTES = 65_536;

// Opening must not hang if a pipe has taken the place of the file.
const READ = constants.O_RDONLY | ((constants as Partial<typeof constants>).O_NONBLOCK ?? 0);

/** All bytes of a file. */
export function* readBytes(path: string): Effects<Buffer> {
  const fd = yield* call('open', path, READ);
  try {
    const { size } = yield* call('fstat', fd);
    const chunks: Buffer[] = [];
    // One byte more than expected, so that a file that did not grow takes one read and its end.
    for (let expected = Number(size) + 1; ; expected = CHUNK_BYTES) {
      const chunk = Buffer.allocUnsafe(expected);
      const count = yield* call('read', fd, chunk, 0, expected, -1);
      if (count === 0) return chunks.length === 1 ? (chunks[0] ?? chunk) : Buffer.concat(chunks);
      chunks.push(chunk.subarray(0, count));
    }
  } finally {
    yield* call('close', fd);
  }
}

/** Whether a file holds exactly these bytes. */
export function* holdsBytes(path: string, { size }: BigIntStats, bytes: Uint8Array): Effects<boolean> {
  if (size !== BigInt(bytes.byteLength)) return false;
  const fd = yield* call('open', path, READ);
  try {
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, bytes.byteLength + 1));
    for (let done = 0; ;) {
      const count = yield* call('read', fd, chunk, 0, chunk.length, -1);
      if (count === 0) return done === bytes.byteLength;
      if (!chunk.subarray(0, count).equals(bytes.subarray(done, done + count))) return false;
      done += count;
    }
  } finally {
    yield* call('close', fd);
  }
}
