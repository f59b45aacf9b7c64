import { withDeadline } from '../core/deadline.js';
import { errnoOf } from '../core/errno.js';
import { TokenError } from '../core/token-error.js';
import { isoTime, type Clock } from '../core/clock.js';
import type { ReadingCalls } from '../fs/calls.js';
import type { Random } from '../core/random.js';
import { redactError } from '../core/resilient-error.js';
import type { TokenClient, TokenCredential } from '../core/token-client.js';
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

/** The state at the time of a request. */
interface MintContext {
  readonly current: TokenLease | undefined;
  /** The newest token seen in the token file. */
  readonly credential: TokenCredential | undefined;
  readonly signal: AbortSignal;
}

/** The timeout of a client's `prepare()`, ms: a busy machine may take half a minute to load a large package. */
const PREPARE_TIMEOUT_MS = 60_000;

/** Requests one token and checks that it is valid. */
export class TokenMint {
  readonly #options: TokenMintOptions;

  constructor(options: TokenMintOptions) {
    this.#options = options;
  }

  /**
   * Resolves to a valid token; to the current lease itself if the server returned the same token.
   * @throws {TokenError} if there is none; the reason of `signal` when that aborts.
   */
  async mint(context: MintContext): Promise<TokenLease> {
    const { clock } = this.#options;
    const { current } = context;
    const token = await this.#request(context);
    const lease = current?.token.equals(token) ? current : new TokenLease(token, clock);
    if (lease.remainingMs() > 0) return lease;
    throw new TokenError(
      'ERR_TOKEN_EXPIRED',
      `The new token has already expired: ${String(token)}, and this machine's clock says ${isoTime(clock.now())}`,
    );
  }

  async #request({ current, credential, signal }: MintContext): Promise<ServiceAccountToken> {
    const { client, audiences, expirationSeconds, tokenFile } = this.#options;
    const request = { audiences, expirationSeconds, ...(credential && { credential }) };
    await this.#prepare(signal);
    try {
      return tokenFromAnswer(
        await this.#inTime(signal, (inTime) => client.requestToken(request, { signal: inTime })),
      );
    } catch (error) {
      if (signal.aborted) throw error;
      if (tokenFile !== false && errnoOf(error) === 'ERR_TOKEN_UNSUPPORTED') {
        return this.#inTime(signal, () => readToken(tokenFile, this.#options));
      }
      throw requestFailed(error, [credential?.value, current?.token.value]);
    }
  }

  async #prepare(signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#options;
    if (!client.prepare) return;
    const work = async (inTime: AbortSignal): Promise<void> => {
      try {
        await client.prepare?.({ signal: inTime });
      } catch {
        // The request will fail for the same reason, and report it.
      }
    };
    await withDeadline(work, {
      clock,
      timeoutMs: PREPARE_TIMEOUT_MS,
      signal,
      late: () => timedOut('The client was not ready', PREPARE_TIMEOUT_MS),
    });
  }

  #inTime<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { clock, attemptTimeoutMs: timeoutMs } = this.#options;
    const late = (): Error => timedOut('The client gave no answer', timeoutMs);
    return withDeadline(work, { clock, timeoutMs, signal, late });
  }
}

function timedOut(what: string, timeoutMs: number): TokenError {
  return new TokenError('ERR_TOKEN_TIMEOUT', `${what} within ${timeoutMs} ms`);
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
    const { retryAfterMs } = Object(error) as { retryAfterMs?: unknown };
    return typeof retryAfterMs === 'number' && retryAfterMs > 0 ? retryAfterMs : undefined;
  } catch {
    return undefined; // A getter that throws.
  }
}
