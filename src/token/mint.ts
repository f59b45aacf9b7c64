import { withDeadline } from '../core/deadline.js';
import { errnoOf, TokenError } from '../core/errors.js';
import { describe } from '../core/options.js';
import { isoTime, type Clock } from '../core/clock.js';
import type { FileSystem } from '../core/file-system.js';
import type { TokenClient } from '../core/token-client.js';
import { readToken } from './read-token.js';
import { tokenFromAnswer, withoutTokens, type ServiceAccountToken } from './token.js';
import { TokenLease } from './lease.js';

interface TokenMintOptions {
  readonly client: TokenClient;
  readonly audiences: readonly string[];
  readonly expirationSeconds: number;
  readonly tokenFile: string | false;
  readonly attemptTimeoutMs: number;
  readonly clock: Clock;
  readonly fs: FileSystem;
}

/** Gets one token and looks whether it is good. */
export class TokenMint {
  readonly #options: TokenMintOptions;

  constructor(options: TokenMintOptions) {
    this.#options = options;
  }

  /**
   * A good token: `current` itself when that is what came again.
   * @throws {TokenError} for anything else; the reason of `signal` when that aborts.
   */
  async mint(current: TokenLease | undefined, signal: AbortSignal): Promise<TokenLease> {
    const { clock } = this.#options;
    const token = await this.#request(signal);
    const lease = current?.token.equals(token) ? current : new TokenLease(token, clock);
    if (lease.remainingMs() > 0) return lease;
    const now = isoTime(clock.now());
    throw new TokenError(
      'ERR_TOKEN_EXPIRED',
      `The token just received is over already: ${String(token)}, and this machine's clock says ${now}`,
    );
  }

  async #request(signal: AbortSignal): Promise<ServiceAccountToken> {
    const { client, audiences, expirationSeconds, tokenFile, fs } = this.#options;
    const request = { audiences, expirationSeconds };
    let answer: unknown;
    try {
      answer = await this.#inTime(signal, (inTime) => client.requestToken(request, { signal: inTime }));
    } catch (error) {
      if (signal.aborted) throw error;
      if (tokenFile !== false && errnoOf(error) === 'ERR_TOKEN_UNSUPPORTED') {
        return this.#inTime(signal, () => readToken(tokenFile, fs));
      }
      throw requestFailed(error);
    }
    return tokenFromAnswer(answer);
  }

  #inTime<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { clock, attemptTimeoutMs: timeoutMs } = this.#options;
    const late = (): Error =>
      new TokenError('ERR_TOKEN_TIMEOUT', `There was no token within ${timeoutMs} ms`);
    return withDeadline(work, { clock, timeoutMs, signal, late });
  }
}

/** What a client rejected with, as a `TokenError` that shows no token. */
function requestFailed(error: unknown): TokenError {
  const cause = withoutTokens(error);
  if (cause instanceof TokenError) return cause;
  const reason = cause instanceof Error ? cause.message : describe(cause);
  const retryAfterMs = retryAfterOf(error);
  return new TokenError('ERR_TOKEN_REQUEST', `Cannot get a token from the API server: ${reason}`, {
    cause,
    retryAfterMs,
  });
}

function retryAfterOf(error: unknown): number | undefined {
  const { retryAfterMs } = Object(error) as { retryAfterMs?: unknown };
  return typeof retryAfterMs === 'number' && retryAfterMs > 0 ? retryAfterMs : undefined;
}
