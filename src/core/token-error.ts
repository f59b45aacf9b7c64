import { ResilientError } from './resilient-error.js';

/** What went wrong with a token. */
export type TokenErrorCode =
  /** The client failed for none of the reasons below; `cause` is what it threw. */
  | 'ERR_TOKEN_REQUEST'
  /** The API server was not reached: refused, reset, no such host, or a certificate that is not trusted. */
  | 'ERR_TOKEN_NETWORK'
  /** 401: the credentials of the client have expired, or are not valid yet. */
  | 'ERR_TOKEN_UNAUTHORIZED'
  /** 403: the client may not create tokens; RBAC has to be changed. */
  | 'ERR_TOKEN_FORBIDDEN'
  /** 404: there is no such ServiceAccount, or the object to bind to is gone. */
  | 'ERR_TOKEN_NOT_FOUND'
  /** The API server rejects the request (400, 409, 422). */
  | 'ERR_TOKEN_INVALID'
  /** The API server throttles the client (429, or 503 with `Retry-After`). */
  | 'ERR_TOKEN_THROTTLED'
  /** No answer in time. */
  | 'ERR_TOKEN_TIMEOUT'
  /** The API server has no TokenRequest API. Thrown by a `TokenClient`; the projected file is used instead. */
  | 'ERR_TOKEN_UNSUPPORTED'
  /** The answer or the file is not a token, or its dates make no sense. */
  | 'ERR_TOKEN_MALFORMED'
  /** The token has expired; `cause` says why there is no newer one. */
  | 'ERR_TOKEN_EXPIRED'
  /** There has been no token yet; `cause` says why. */
  | 'ERR_TOKEN_UNAVAILABLE'
  /** The client cannot work: a package that it needs is missing. Not retried. */
  | 'ERR_TOKEN_CLIENT'
  /** The token file cannot be read. */
  | 'ERR_TOKEN_FILE'
  /** A sink failed; `cause` is what it threw. */
  | 'ERR_TOKEN_SINK';

/** There is no usable token, or it could not be delivered. It may heal by itself; refreshing continues. */
export class TokenError extends ResilientError {
  override readonly name = 'TokenError';
  readonly code: TokenErrorCode;
  /** How long the server asked to wait (`Retry-After`), ms; undefined for anything but a number above 0. */
  readonly retryAfterMs: number | undefined;

  constructor(
    code: TokenErrorCode,
    message: string,
    options?: ErrorOptions & { readonly retryAfterMs?: number | undefined },
  ) {
    super(message, options);
    this.code = code;
    const retryAfterMs: unknown = options?.retryAfterMs;
    this.retryAfterMs = typeof retryAfterMs === 'number' && retryAfterMs > 0 ? retryAfterMs : undefined;
  }
}
