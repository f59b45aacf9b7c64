import { TokenError } from '../core/errors/token-error.js';
import { kubernetesTime, systemClock, type Clock } from '../core/ports/clock.js';
import { untilAborted } from '../core/scheduling/abort.js';
import { sleep } from '../core/scheduling/sleep.js';
import type { TokenAnswer, TokenClaims, TokenClient, TokenRequest } from '../core/ports/token-client.js';

/**
 * Creates a token with these claims (`iat`, `nbf`, `exp` in seconds), dated as by an API server. It is not signed, so
 * no real server accepts it.
 *
 * ```ts
 * mintTestToken({ iat: 1711900695, exp: 1743436695, 'kubernetes.io': { warnafter: 1711904302 } });
 * ```
 */
export function mintTestToken(claims: TokenClaims = {}): string {
  const iss = 'https://kubernetes.default.svc.cluster.local';
  const sub = 'system:serviceaccount:default:default';
  const parts = [{ alg: 'none' }, { iss, sub, ...claims }].map((part) => JSON.stringify(part));
  return `${parts.map((part) => Buffer.from(part).toString('base64url')).join('.')}.`;
}

/** The reaction of a `FakeTokenClient` to one request. */
export interface TokenStep {
  /** How long the reaction takes, ms; `Infinity`: until the request is aborted. Default 0. */
  readonly delayMs?: number;
  /** The error that the request rejects with. */
  readonly error?: unknown;
  /** The response, which need not be valid. Default: a valid token. */
  readonly answer?: unknown;
}

/**
 * A fake TokenRequest API. It answers with valid tokens unless scripted otherwise.
 *
 * ```ts
 * const client = new FakeTokenClient({ clock });
 * client.script({ error: new Error('ECONNREFUSED') }, { delayMs: Infinity }, { answer: { token: '' } });
 * client.otherwise = { error: FakeTokenClient.tooManyRequests(30_000) }; // until it is set to {} again
 * client.rotateSigningKey(); // tokens minted before are no longer accepted
 * ```
 */
export class FakeTokenClient implements TokenClient {
  /** The reaction to requests that are not scripted. */
  otherwise: TokenStep = {};
  /** How far the server's clock is ahead of ours, ms. */
  skewMs = 0;
  /** Every request so far, with the time when it arrived, epoch ms. */
  readonly requests: (TokenRequest & { readonly at: number })[] = [];
  /** The number of requests in progress. */
  inFlight = 0;
  /** The maximum number of requests that were in progress at once. */
  mostInFlight = 0;
  readonly #clock: Clock;
  readonly #steps: TokenStep[] = [];
  #valid = new Set<string>();

  constructor({ clock = systemClock }: { readonly clock?: Clock } = {}) {
    this.#clock = clock;
  }

  /** The error of a server that asks to wait (429). */
  static tooManyRequests(retryAfterMs: number): TokenError {
    return new TokenError('ERR_TOKEN_THROTTLED', '429 Too Many Requests', { retryAfterMs });
  }

  /** The error of a server without a TokenRequest API. */
  static unsupported(): TokenError {
    return new TokenError('ERR_TOKEN_UNSUPPORTED', 'The server has no serviceaccounts/token');
  }

  /** Scripts the next requests, one step for each. */
  script(...steps: TokenStep[]): void {
    this.#steps.push(...steps);
  }

  /** Rotates the key: only tokens that are minted from now on are accepted. */
  rotateSigningKey(): void {
    this.#valid = new Set();
  }

  /** Whether the server accepts this token, that is, whether it minted it after the last rotation. */
  accepts(token: string): boolean {
    return this.#valid.has(token);
  }

  /** A valid token, issued now. */
  mint(expirationSeconds = 3_600, audiences: readonly string[] = []): TokenAnswer {
    const iat = Math.floor((this.#clock.now() + this.skewMs) / 1000);
    const exp = iat + expirationSeconds;
    const jti = `${this.requests.length}-${this.#valid.size}-${iat}`;
    const token = mintTestToken({ iat, nbf: iat, exp, jti, aud: [...audiences] });
    this.#valid.add(token);
    return { token, expirationTimestamp: kubernetesTime(exp * 1000) };
  }

  async requestToken(request: TokenRequest, { signal }: { signal: AbortSignal }): Promise<TokenAnswer> {
    this.requests.push({ ...request, at: this.#clock.now() });
    const { delayMs = 0, error, answer } = this.#steps.shift() ?? this.otherwise;
    this.inFlight += 1;
    this.mostInFlight = Math.max(this.mostInFlight, this.inFlight);
    try {
      if (delayMs === Infinity) await untilAborted(new Promise(() => {}), signal);
      else if (delayMs > 0) await sleep(this.#clock, delayMs, { signal });
      if (error !== undefined) throw error as Error;
      if (answer !== undefined) return answer as TokenAnswer;
      return this.mint(request.expirationSeconds, request.audiences);
    } finally {
      this.inFlight -= 1;
    }
  }
}
