import { constants, type BigIntStats } from 'node:fs';

import { call, type Effects } from '../fs/effects.js';
import type { HeldDirectory } from './held-directory.js';

const CHUNK_BYTES = 65_536;

const { O_RDONLY } = constants;
const { O_NONBLOCK = 0, O_NOFOLLOW = 0 } = constants as Partial<typeof constants>;

/** A pipe may have taken the place of the file: opening it must not block. */
const READ = O_RDONLY | O_NONBLOCK;

/** Whether a file holds exactly these bytes. A link in its place is not followed. */
export function* holdsBytes(
  directory: HeldDirectory,
  name: string,
  { size }: BigIntStats,
  bytes: Uint8Array,
): Effects<boolean> {
  if (size !== BigInt(bytes.byteLength)) return false;
  const fd = yield* call('open', directory.at(name), READ | O_NOFOLLOW);
  try {
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, bytes.byteLength + 1));
    for (let done = 0; ;) {
      const count = yield* call('read', fd, chunk, 0, chunk.length, -1);
      if (!chunk.subarray(0, count).equals(bytes.subarray(done, done + count))) return false;
      done += count;
      // Only at the end is less read than was asked for.
      if (count < chunk.length) return done === bytes.byteLength;
    }
  } finally {
    yield* call('close', fd);
  }
}
