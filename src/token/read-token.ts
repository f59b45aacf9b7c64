import { TokenError } from '../core/errors/token-error.js';
import { bytesIn, readFile, utf16In } from '../fs/read-file.js';
import type { Snapshot } from '../fs/snapshot.js';
import type { ReadingPorts } from '../fs/stable-read.js';
import { tokenFromText, type ServiceAccountToken, type TokenFormat } from './token.js';

/** Real tokens have 1 or 2 KiB; servers accept headers of at most 8 or 16 KiB. */
export const MAX_TOKEN_BYTES = 64 * 1024;

/**
 * Reads the token in a file, even if the file is replaced meanwhile.
 * @throws {TokenError} `ERR_TOKEN_FILE` when it cannot be read, `ERR_TOKEN_MALFORMED` when it contains no token.
 */
export async function readToken(
  path: string,
  ports: ReadingPorts,
  format: TokenFormat = 'jwt',
): Promise<ServiceAccountToken> {
  const bytes = await readFile(path, MAX_TOKEN_BYTES, ports, unreadable(path));
  return tokenIn(path, textOf(path, bytes), format);
}

/** The text of a file that was already read. */
export function textIn(path: string, snapshot: Snapshot): string {
  return textOf(path, bytesIn(snapshot, MAX_TOKEN_BYTES, unreadable(path)));
}

function textOf(path: string, bytes: Buffer): string {
  const wrong = utf16In(bytes);
  if (wrong !== undefined) throw new TokenError('ERR_TOKEN_MALFORMED', `${path}: the file ${wrong}`);
  return bytes.toString('utf8');
}

export function tokenIn(path: string, text: string, format: TokenFormat): ServiceAccountToken {
  try {
    return tokenFromText(text, format);
  } catch (error) {
    if (!(error instanceof TokenError)) throw error;
    throw new TokenError(error.code, `${path}: ${error.message}`, { cause: error });
  }
}

function unreadable(path: string): (reason: string, cause?: unknown) => TokenError {
  return (reason, cause) => {
    const message = `Cannot read the token file ${path}: ${reason}`;
    return new TokenError('ERR_TOKEN_FILE', message, { cause });
  };
}
