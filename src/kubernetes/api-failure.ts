import { errnoOf, TokenError, type TokenErrorCode } from '../core/errors.js';
import { withoutTokens } from '../token/token.js';

/** As much of client-node's `ApiException` as all versions of it have. */
interface ApiException extends Error {
  readonly code: number;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string | undefined>> | undefined;
}

const CODES: Readonly<Record<number, TokenErrorCode>> = {
  400: 'ERR_TOKEN_INVALID',
  401: 'ERR_TOKEN_UNAUTHORIZED',
  403: 'ERR_TOKEN_FORBIDDEN',
  404: 'ERR_TOKEN_NOT_FOUND',
  408: 'ERR_TOKEN_TIMEOUT',
  409: 'ERR_TOKEN_INVALID',
  422: 'ERR_TOKEN_INVALID',
  429: 'ERR_TOKEN_THROTTLED',
  504: 'ERR_TOKEN_TIMEOUT',
};

const ADVICE: Readonly<Partial<Record<TokenErrorCode, string>>> = {
  ERR_TOKEN_UNAUTHORIZED: 'the credentials of this client are not taken',
  ERR_TOKEN_FORBIDDEN: 'grant "create" on "serviceaccounts/token" to this client',
  ERR_TOKEN_NOT_FOUND: 'create the ServiceAccount, or correct its name',
};

/** The status that the API server answered with, if it did. */
export function statusOf(error: unknown): number | undefined {
  return isApiException(error) ? error.code : undefined;
}

/**
 * Why there was no token, by what client-node threw.
 * @param account `namespace/name` of the ServiceAccount.
 */
export function tokenFailure(account: string, thrown: unknown): TokenError {
  if (thrown instanceof TokenError) return thrown;
  const cause = withoutTokens(thrown);
  if (!isApiException(thrown)) {
    const { code, reason } = networkFailure(thrown);
    return new TokenError(code, `Cannot ask for a token of ${account}: ${reason}`, { cause });
  }
  const { message, details } = statusBodyOf(thrown.body);
  const retryAfterMs = retryAfterOf(thrown.headers?.['retry-after'] ?? details?.retryAfterSeconds);
  const isThrottled = thrown.code === 503 && retryAfterMs !== undefined;
  const code = isThrottled ? 'ERR_TOKEN_THROTTLED' : (CODES[thrown.code] ?? 'ERR_TOKEN_REQUEST');
  const parts = [`The API server gave no token of ${account} (${thrown.code})`, message, ADVICE[code]];
  const text = parts.filter((part) => part !== undefined).join(': ');
  return new TokenError(code, String(withoutTokens(text)), { cause, retryAfterMs });
}

function isApiException(error: unknown): error is ApiException {
  return error instanceof Error && 'body' in error && 'code' in error && typeof error.code === 'number';
}

function statusBodyOf(body: unknown): {
  readonly message?: string;
  readonly details?: { readonly retryAfterSeconds?: unknown };
} {
  let status = body;
  try {
    if (typeof body === 'string') status = JSON.parse(body);
  } catch {
    return {}; // A proxy's page.
  }
  const { message, details } = Object(status) as { message?: unknown; details?: unknown };
  return {
    ...(typeof message === 'string' && { message }),
    ...(typeof details === 'object' && details !== null && { details }),
  };
}

/** Whole seconds, as the API server says it. */
function retryAfterOf(value: unknown): number | undefined {
  const seconds = Number(value ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : undefined;
}

/** `fetch` says only that it failed; why is in the chain of causes. */
function networkFailure(error: unknown): { readonly code: TokenErrorCode; readonly reason: string } {
  for (let link = error, depth = 0; link instanceof Error && depth < 5; link = link.cause, depth += 1) {
    const errno = errnoOf(link);
    if (errno === undefined) continue;
    const code = /TIMEOUT|TIMEDOUT/.test(errno) ? 'ERR_TOKEN_TIMEOUT' : 'ERR_TOKEN_NETWORK';
    return { code, reason: `${errno}: ${link.message}` };
  }
  return { code: 'ERR_TOKEN_REQUEST', reason: error instanceof Error ? error.message : typeof error };
}
