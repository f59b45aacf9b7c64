import { TokenError } from '../core/token-error.js';
import { readFile } from '../fs/read-file.js';
import type { ReadingPorts } from '../fs/stable-read.js';
import { tokenFromText, type ServiceAccountToken, type TokenFormat } from './token.js';

/** Real tokens have one or two KiB; servers accept headers of at most 8 or 16 KiB. */
const LARGEST_BYTES = 64 * 1024;

/**
 * The token in a file, even if the file is replaced while it is read.
 * @throws {TokenError} `ERR_TOKEN_FILE` when it cannot be read, `ERR_TOKEN_MALFORMED` when it holds no token.
 */
export async function readToken(
  path: string,
  ports: ReadingPorts,
  format: TokenFormat = 'jwt',
): Promise<ServiceAccountToken> {
  const bytes = await readFile(path, LARGEST_BYTES, ports, (reason, cause) =>
    unreadable(path, reason, cause),
  );
  return tokenInFile(path, bytes.toString('utf8'), format);
}

/** The same for text that was already read. */
export function tokenInFile(path: string, text: string, format: TokenFormat = 'jwt'): ServiceAccountToken {
  try {
    return tokenFromText(text, format);
  } catch (error) {
    if (!(error instanceof TokenError)) throw error;
    throw new TokenError(error.code, `${path}: ${error.message}`, { cause: error });
  }
}

function unreadable(path: string, reason: string, cause?: unknown): TokenError {
  const options = cause === undefined ? undefined : { cause };
  return new TokenError('ERR_TOKEN_FILE', `Cannot read the token file ${path}: ${reason}`, options);
}
