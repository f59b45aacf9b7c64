import { constants } from 'node:fs';

import { errnoOf, TokenError } from '../core/errors.js';
import type { FileSystem } from '../core/file-system.js';
import { tokenFromText, type ServiceAccountToken, type TokenFormat } from './token.js';
import { call, runAsync, type Effects } from '../fs/effects.js';

/** Real tokens have one or two KiB; a server takes headers of at most 8 or 16. */
const LARGEST_BYTES = 64 * 1024;

/** A swap of the volume may fall between two steps of one path resolution; the next one finds the new file. */
const ATTEMPTS = 3;

/**
 * The token in a file.
 * @throws {TokenError} `ERR_TOKEN_FILE` when it cannot be read, `ERR_TOKEN_MALFORMED` when it holds no token.
 */
export async function readToken(
  path: string,
  fs: FileSystem,
  format: TokenFormat = 'jwt',
): Promise<ServiceAccountToken> {
  return tokenInFile(path, await readText(path, fs), format);
}

/** The same for a text that was read already. */
export function tokenInFile(path: string, text: string, format: TokenFormat = 'jwt'): ServiceAccountToken {
  try {
    return tokenFromText(text, format);
  } catch (error) {
    if (!(error instanceof TokenError)) throw error;
    throw new TokenError(error.code, `${path}: ${error.message}`, { cause: error });
  }
}

async function readText(path: string, fs: FileSystem): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return (await runAsync(readBytes(path), fs)).toString('utf8');
    } catch (cause) {
      const errno = errnoOf(cause);
      if ((errno === 'ENOENT' || errno === 'ESTALE') && attempt < ATTEMPTS) continue;
      if (cause instanceof TokenError) throw cause;
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new TokenError('ERR_TOKEN_FILE', `Cannot read the token file ${path}: ${reason}`, { cause });
    }
  }
}

function* readBytes(path: string): Effects<Buffer> {
  // A FIFO in its place must not hang the process.
  const fd = yield* call('open', path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const buffer = Buffer.allocUnsafe(LARGEST_BYTES + 1);
    let length = 0;
    for (;;) {
      const count = yield* call('read', fd, buffer, length, buffer.length - length, -1);
      length += count;
      if (length > LARGEST_BYTES) {
        throw new TokenError(
          'ERR_TOKEN_FILE',
          `${path} has over ${LARGEST_BYTES} bytes, so it is not a token`,
        );
      }
      if (count === 0) return buffer.subarray(0, length);
    }
  } finally {
    yield* call('close', fd);
  }
}
