import type { ServiceAccountToken } from './token.js';

/** Who has the current token and takes back a refused one: a `TokenFile` or a `TokenRefresher`. */
export type TokenSource = (
  { get(): Promise<ServiceAccountToken> } | { token(): Promise<ServiceAccountToken> }
) & {
  reportUnauthorized(token: ServiceAccountToken): Promise<ServiceAccountToken>;
};

/**
 * A `fetch` that sends the current token as `Authorization: Bearer`. On 401 it reports the token, and if the
 * source then has another one the request is repeated once with it. A request whose body can be sent only once
 * (a stream, or a `Request` with a body) is not repeated: its 401 is what you get.
 *
 * Rejects as `fetch` does, and with the source's error when there is no good token.
 * @param options.fetch what sends; default the global `fetch`. A `dispatcher` for the cluster's CA goes in here.
 */
export function fetchWithToken(
  source: TokenSource,
  { fetch: send = fetch }: { readonly fetch?: typeof fetch } = {},
): typeof fetch {
  return async (input, init) => {
    const token = await ('get' in source ? source.get() : source.token());
    const response = await send(input, authorized(input, init, token));
    if (response.status !== 401) return response;
    const report = source.reportUnauthorized(token);
    if (!isRepeatable(input, init)) return response;
    // Without a better token the 401 is the answer.
    const next = await report.catch(() => token);
    if (next.equals(token) || init?.signal?.aborted) return response;
    await response.body?.cancel();
    return send(input, authorized(input, init, next));
  };
}

type Input = Parameters<typeof fetch>[0];

function authorized(input: Input, init: RequestInit | undefined, token: ServiceAccountToken): RequestInit {
  const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined));
  headers.set('authorization', `Bearer ${token.value}`);
  return { ...init, headers };
}

function isRepeatable(input: Input, init: RequestInit | undefined): boolean {
  const body: unknown = init?.body ?? (input instanceof Request ? input.body : undefined);
  const once =
    typeof body === 'object' && body !== null && (Symbol.asyncIterator in body || 'getReader' in body);
  return !once;
}
