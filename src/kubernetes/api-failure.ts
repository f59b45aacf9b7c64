import { LONGEST_RETRY_AFTER_MS } from '../core/scheduling/backoff.js';
import { parseGmtDate } from '../core/ports/clock.js';
import { errnoOf } from '../core/errors/errno.js';
import { TokenError, type TokenErrorCode } from '../core/errors/token-error.js';
import { PackageError } from '../core/errors/package-error.js';
import { KubernetesError, NotInPodError } from './kubernetes-error.js';
import { redact } from '../core/options/redaction.js';
import { redactError } from '../core/errors/resilient-error.js';
import { API_FAILURES, ApiFailure, messageOf } from './api-request.js';

const CODES: Readonly<Record<number, TokenErrorCode>> = {
  400: 'ERR_TOKEN_INVALID',
  401: 'ERR_TOKEN_UNAUTHORIZED',
  403: 'ERR_TOKEN_FORBIDDEN',
  404: 'ERR_TOKEN_INVALID',
  408: 'ERR_TOKEN_TIMEOUT',
  409: 'ERR_TOKEN_INVALID',
  422: 'ERR_TOKEN_INVALID',
  429: 'ERR_TOKEN_THROTTLED',
  504: 'ERR_TOKEN_TIMEOUT',
};

const ADVICE: Readonly<Record<number, string>> = {
  403: 'grant "create" on "serviceaccounts/token" to this client',
  404: 'create the ServiceAccount, or correct its name',
};

interface FailureContext {
  /** `namespace/name` of the ServiceAccount. */
  readonly account: string;
  /** The credentials that were refused, in words. */
  readonly refused: readonly string[];
  /** Secrets to remove from everything that is reported. */
  readonly secrets: readonly string[];
}

/** What the failure of another client may have. */
interface ForeignFailure {
  readonly code: unknown;
  readonly status?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

export function statusOf(error: unknown): number | undefined {
  return apiFailureOf(error)?.status;
}

/** Converts an error into a `TokenError` with the reason why there is no token. */
export function tokenFailure(thrown: unknown, { account, refused, secrets }: FailureContext): TokenError {
  if (thrown instanceof TokenError) return thrown;
  const cause = redactError(thrown, secrets);
  const failure = apiFailureOf(thrown);
  if (!failure) {
    const { code, reason } = otherFailure(thrown);
    return new TokenError(code, redact(`Cannot request a token for ${account}: ${reason}`, secrets), {
      cause,
    });
  }
  const { status, message } = failure;
  const retryAfterMs = retryAfterOf(failure);
  const isThrottled = status === 503 && retryAfterMs !== undefined;
  const code = isThrottled ? 'ERR_TOKEN_THROTTLED' : (CODES[status] ?? 'ERR_TOKEN_REQUEST');
  const advice = code === 'ERR_TOKEN_UNAUTHORIZED' ? refusal(refused) : ADVICE[status];
  const parts = [`The API server issued no token for ${account} (${status})`, message, advice];
  const text = parts.filter((part) => part !== undefined && part !== '').join(': ');
  return new TokenError(code, redact(text, secrets), { cause, retryAfterMs });
}

function refusal(refused: readonly string[]): string {
  return refused.length === 0
    ? 'it refused the credentials of this client'
    : `it refused ${refused.join(' and ')}`;
}

/** The failure thrown by `requestApi`, of any copy of the library, or the `ApiException` of any version of client-node. */
export function apiFailureOf(error: unknown): ApiFailure | undefined {
  if (!(error instanceof Error && 'code' in error)) return undefined;
  const { code, status, headers: given } = error as ForeignFailure;
  const headers = { ...given };
  let { body } = error as ForeignFailure;
  const own = API_FAILURES.find((known) => known === code);
  if (own && typeof status === 'number')
    return new ApiFailure(status, error.message, { code: own, headers, body });
  if (typeof code !== 'number' || !('body' in error)) return undefined;
  try {
    if (typeof body === 'string') body = JSON.parse(body);
  } catch {
    // For example the HTML page of a proxy.
  }
  return new ApiFailure(code, messageOf(body), { headers, body });
}

/** How long the server asks to wait, ms: at most 5 minutes, and 0 if it does not say. */
export function pauseAfter(error: unknown): number {
  const failure = apiFailureOf(error);
  return Math.min((failure && retryAfterOf(failure)) ?? 0, LONGEST_RETRY_AFTER_MS);
}

/** In seconds, as the API server says it, or until a date, as a proxy may. */
function retryAfterOf({ headers, body }: ApiFailure): number | undefined {
  const { details } = Object(body) as { details?: unknown };
  const { retryAfterSeconds } = Object(details) as { retryAfterSeconds?: unknown };
  const given = headers['retry-after'] ?? retryAfterSeconds ?? Number.NaN;
  const untilMs = parseGmtDate(given) - parseGmtDate(headers['date']);
  const ms = Number.isNaN(Number(given)) ? untilMs : Number(given) * 1000;
  return Number.isFinite(ms) && ms >= 0 ? ms : undefined;
}

/** Codes of Node.js that do not concern the network. */
const LOCAL_CODE = /^ERR_(?!TLS|SSL|HTTP|STREAM|PROXY)/;

/** Why there was no answer. */
export function otherFailure(error: unknown): { readonly code: TokenErrorCode; readonly reason: string } {
  if (error instanceof PackageError || error instanceof NotInPodError)
    return { code: 'ERR_TOKEN_CLIENT', reason: error.message };
  if (error instanceof KubernetesError) {
    const code = error.code === 'ERR_EXEC_PLUGIN' ? 'ERR_TOKEN_PLUGIN' : 'ERR_TOKEN_REQUEST';
    return { code, reason: error.message };
  }
  // `fetch` only reports that it failed; the reason is in the chain of causes.
  for (let link = error, depth = 0; link instanceof Error && depth < 5; link = link.cause, depth += 1) {
    const errno = errnoOf(link);
    if (errno === undefined || LOCAL_CODE.test(errno)) continue;
    const code = /TIMEOUT|TIMEDOUT/.test(errno) ? 'ERR_TOKEN_TIMEOUT' : 'ERR_TOKEN_NETWORK';
    return { code, reason: `${errno}: ${wordsOf(link)}` };
  }
  return { code: 'ERR_TOKEN_REQUEST', reason: error instanceof Error ? wordsOf(error) : typeof error };
}

/** A host with several addresses fails with an error for each, and an empty message. */
function wordsOf(error: Error): string {
  if (error.message !== '' || !(error instanceof AggregateError)) return error.message;
  return error.errors.map((inner: unknown) => (inner instanceof Error ? inner.message : '')).join(', ');
}
