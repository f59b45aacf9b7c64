import { TokenError } from '../core/token-error.js';
import { absolutePath } from '../fs/absolute-path.js';
import { stableRead, type ReadingPorts } from '../fs/stable-read.js';
import { PathTarget } from '../fs/targets/path-target.js';
import { tokenFromText, type ServiceAccountToken, type TokenFormat } from './token.js';

/** Real tokens have one or two KiB; servers accept headers of at most 8 or 16 KiB. */
const LARGEST_BYTES = 64 * 1024;

/** If the path is a directory, nothing in it is read. */
const LIMITS = { maxContentBytes: LARGEST_BYTES, maxTotalBytes: LARGEST_BYTES, maxFiles: 0 };

/**
 * The token in a file, even if the file is replaced while it is read.
 * @throws {TokenError} `ERR_TOKEN_FILE` when it cannot be read, `ERR_TOKEN_MALFORMED` when it holds no token.
 */
export async function readToken(
  path: string,
  ports: ReadingPorts,
  format: TokenFormat = 'jwt',
): Promise<ServiceAccountToken> {
  return tokenInFile(path, await readText(path, ports), format);
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

async function readText(path: string, { fs, clock, random }: ReadingPorts): Promise<string> {
  const snapshot = await stableRead(new PathTarget(absolutePath(path), LIMITS), { fs, clock, random }).catch(
    (cause: unknown) => {
      throw unreadable(path, cause instanceof Error ? cause.message : String(cause), cause);
    },
  );
  if (snapshot.kind === 'missing') throw unreadable(path, 'it does not exist');
  if (snapshot.kind !== 'file') throw unreadable(path, 'it is a directory');
  if (!snapshot.content) {
    throw unreadable(path, `it has ${snapshot.size} bytes, more than the limit of ${LARGEST_BYTES}`);
  }
  return snapshot.content.toString('utf8');
}

function unreadable(path: string, reason: string, cause?: unknown): TokenError {
  const options = cause === undefined ? undefined : { cause };
  return new TokenError('ERR_TOKEN_FILE', `Cannot read the token file ${path}: ${reason}`, options);
}
