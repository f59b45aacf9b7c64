import { untilAborted } from '../core/scheduling/abort.js';
import { describe, hasMethods } from '../core/options/options.js';
import type { ValueSource } from '../core/ports/value-source.js';
import type { ServiceAccountToken } from './token.js';

/**
 * A source of the current token, such as a `TokenFile` or a `TokenRefresher`. `reportUnauthorized()` is called with a
 * token that was refused, and resolves to the token to use instead.
 */
export interface TokenSource extends ValueSource<ServiceAccountToken> {
  reportUnauthorized?(token: ServiceAccountToken): Promise<ServiceAccountToken>;
}

/** Options of `fetchWithToken`. */
export interface FetchWithTokenOptions {
  /**
   * The function that sends the requests; default the global `fetch`. Use it, for example, to pass a `dispatcher` that
   * trusts the cluster's CA.
   */
  readonly fetch?: typeof fetch | undefined;
}

/**
 * Creates a `fetch` that sends the current token as `Authorization: Bearer`. On a 401, it reports the token; if the
 * source then has another token, the request is repeated once with that. A request whose body can be sent only once (a
 * stream, or a `Request` with a body) is not repeated: its 401 is returned. A 401 of another origin, to which a
 * redirect has led, is returned as well: `fetch` sends it no token.
 *
 * Rejects as `fetch` does, and with the source's error if there is no valid token.
 * @throws {TypeError} if the source has no `get()`, or for a wrong option.
 */
export function fetchWithToken(source: TokenSource, options: FetchWithTokenOptions = {}): typeof fetch {
  if (!hasMethods(source, ['get'])) {
    const wanted = 'an object with get(), such as a TokenFile or a TokenRefresher';
    throw new TypeError(`fetchWithToken: source must be ${wanted}, got ${describe(source)}`);
  }
  const { fetch: send = fetch } = options;
  if (typeof send !== 'function') {
    throw new TypeError(`fetchWithToken: option "fetch" must be a function, got ${describe(send)}`);
  }
  return async (input, init) => {
    const signal = init?.signal ?? requestOf(input)?.signal;
    const token = await untilAborted(source.get(), signal);
    const response = await send(input, authorized(input, init, token));
    if (response.status !== 401 || isFromElsewhere(input, response)) return response;
    const report = (async () => source.reportUnauthorized?.(token) ?? source.get())();
    // Without a better token, the 401 is returned.
    const better = untilAborted(report, signal).catch(() => token);
    if (!isRepeatable(input, init)) return response;
    const next = await better;
    if (next.equals(token) || signal?.aborted) return response;
    // The body may have failed already.
    await response.body?.cancel().catch(() => {});
    return send(input, authorized(input, init, next));
  };
}

type Input = Parameters<typeof fetch>[0];

/** The input if it is a `Request`, perhaps of another implementation of `fetch`, such as the package `undici`. */
function requestOf(input: Input): Request | undefined {
  return typeof input === 'object' && 'headers' in input ? input : undefined;
}

/** Whether a redirect has led to another origin, which never got the token. */
function isFromElsewhere(input: Input, { redirected, url }: Response): boolean {
  const asked = requestOf(input)?.url ?? (input as string | URL);
  return redirected && originOf(asked) !== originOf(url);
}

function originOf(url: string | URL): string | undefined {
  return URL.canParse(String(url)) ? new URL(url).origin : undefined;
}

function authorized(input: Input, init: RequestInit | undefined, token: ServiceAccountToken): RequestInit {
  const headers = new Headers(init?.headers ?? requestOf(input)?.headers);
  headers.set('authorization', `Bearer ${token.value}`);
  return { ...init, headers };
}

function isRepeatable(input: Input, init: RequestInit | undefined): boolean {
  const body: unknown = init?.body ?? requestOf(input)?.body;
  const isStream =
    typeof body === 'object' && body !== null && (Symbol.asyncIterator in body || 'getReader' in body);
  return !isStream;
}
