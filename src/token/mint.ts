import { withDeadline } from '../core/scheduling/deadline.js';
import { errnoOf } from '../core/errors/errno.js';
import { TokenError } from '../core/errors/token-error.js';
import { isoTime, type Clock } from '../core/ports/clock.js';
import type { ReadingCalls } from '../fs/calls.js';
import type { Random } from '../core/ports/random.js';
import { redactError } from '../core/errors/resilient-error.js';
import type { TokenClient, TokenCredential } from '../core/ports/token-client.js';
import { readToken } from './read-token.js';
import { tokenFromAnswer, type ServiceAccountToken } from './token.js';
import { TokenLease } from './lease.js';

interface TokenMintOptions {
  readonly client: TokenClient;
  readonly audiences: readonly string[];
  readonly expirationSeconds: number;
  readonly tokenFile: string | false;
  readonly attemptTimeoutMs: number;
  readonly clock: Clock;
  readonly fs: ReadingCalls;
  readonly random: Random;
}

interface MintContext {
  readonly current: TokenLease | undefined;
  /** The newest token seen in the token file. */
  readonly credential: TokenCredential | undefined;
  readonly signal: AbortSignal;
}

/** The timeout of a client's `prepare()`, ms: a busy machine may take half a minute to load a large package. */
const PREPARE_TIMEOUT_MS = 60_000;

/**
 * Requests one token and checks that it is valid. Resolves to the current lease itself if the server returned the same
 * token.
 * @throws {TokenError} if there is none; the reason of `signal` when that aborts.
 */
export async function mintToken(options: TokenMintOptions, context: MintContext): Promise<TokenLease> {
  const { current } = context;
  const token = await request(options, context);
  const lease = current?.token.equals(token) ? current : new TokenLease(token, options.clock);
  // A token that is replaced late is better than none or another such, but not than one that is not due.
  const isDue = (current?.remainingMs() ?? 0) <= 0;
  if ((isDue ? lease.acceptedMs() : lease.remainingMs()) > 0) return lease;
  throw new TokenError(
    'ERR_TOKEN_EXPIRED',
    `The new token has already expired: ${String(token)}, and this machine's clock says ${isoTime(options.clock.now())}`,
  );
}

async function request(
  options: TokenMintOptions,
  { current, credential, signal }: MintContext,
): Promise<ServiceAccountToken> {
  const { client, audiences, expirationSeconds, tokenFile, attemptTimeoutMs, clock } = options;
  const inTime = <T>(
    what: string,
    timeoutMs: number,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> =>
    withDeadline(work, {
      clock,
      timeoutMs,
      signal,
      late: () => new TokenError('ERR_TOKEN_TIMEOUT', `${what} within ${timeoutMs} ms`),
    });
  const noAnswer = 'The client gave no answer';
  if (client.prepare) {
    // If it fails, the request fails for the same reason, and reports it.
    const prepared = async (until: AbortSignal): Promise<unknown> => client.prepare?.({ signal: until });
    await inTime('The client was not ready', PREPARE_TIMEOUT_MS, (until) => prepared(until).catch(() => {}));
  }
  try {
    const asked = { audiences, expirationSeconds, ...(credential && { credential }) };
    const ask = (until: AbortSignal): Promise<unknown> => client.requestToken(asked, { signal: until });
    return tokenFromAnswer(await inTime(noAnswer, attemptTimeoutMs, ask));
  } catch (error) {
    if (signal.aborted) throw error;
    if (tokenFile !== false && errnoOf(error) === 'ERR_TOKEN_UNSUPPORTED') {
      return inTime(noAnswer, attemptTimeoutMs, () => readToken(tokenFile, options));
    }
    throw requestFailed(error, [credential?.value, current?.token.value]);
  }
}

/** Converts an error of a client into a `TokenError` that shows no token. */
function requestFailed(error: unknown, secrets: readonly (string | undefined)[]): TokenError {
  const cause = redactError(
    error,
    secrets.filter((secret) => secret !== undefined),
  );
  if (cause instanceof TokenError) return cause;
  const retryAfterMs = retryAfterOf(error);
  return new TokenError('ERR_TOKEN_REQUEST', `Cannot get a token from the API server: ${cause.message}`, {
    cause,
    retryAfterMs,
  });
}

function retryAfterOf(error: unknown): number | undefined {
  try {
    // A `TokenError` checks it.
    return (Object(error) as { readonly retryAfterMs?: number }).retryAfterMs;
  } catch {
    return undefined; // A getter that throws.
  }
}
