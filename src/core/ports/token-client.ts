import { inspect } from './builtins.js';

/** The fields of a `TokenCredential`. */
export interface TokenCredentialFields {
  /** The token itself. */
  readonly value: string;
  /** The file that it was read from. */
  readonly path: string;
  /** When the token was first seen in the file, epoch ms. */
  readonly seenAt: number;
}

/** A token read from a file, for authenticating a request. Its printed forms omit the token. */
export class TokenCredential {
  readonly path: string;
  readonly seenAt: number;
  readonly #value: string;

  constructor({ value, path, seenAt }: TokenCredentialFields) {
    this.#value = value;
    this.path = path;
    this.seenAt = seenAt;
  }

  /** The token itself: a secret. */
  get value(): string {
    return this.#value;
  }

  toString(): string {
    return `TokenCredential(${this.path})`;
  }

  toJSON(): Record<string, unknown> {
    const { path, seenAt } = this;
    return { path, seenAt };
  }

  [inspect.custom](): string {
    return this.toString();
  }
}

/** A request to the TokenRequest API. */
export interface TokenRequest {
  /** Empty: the audience of the API server itself. */
  readonly audiences: readonly string[];
  /** The server may grant a shorter or, for its own audiences, a longer lifetime. */
  readonly expirationSeconds: number;
  /**
   * The newest projected token known to the caller. After a rotation of the signing key, it may be accepted before the
   * client's own credentials are. A client with other credentials may ignore it.
   */
  readonly credential?: TokenCredential | undefined;
}

/** The response of the TokenRequest API: its `status`. */
export interface TokenAnswer {
  readonly token: string;
  /** RFC 3339, a `Date`, or epoch ms. */
  readonly expirationTimestamp: string | Date | number;
}

/**
 * Requests tokens from an API server. It should read its own credentials for each request, because they also expire.
 */
export interface TokenClient {
  /**
   * Loads what a request needs, such as a package. Called before each request, whose timeout does not include it,
   * because a busy machine may take long. After a minute its signal aborts, and the attempt fails with
   * `ERR_TOKEN_TIMEOUT`. If it rejects, the request is made nevertheless.
   */
  prepare?(options: { readonly signal: AbortSignal }): Promise<unknown>;
  /**
   * Rejects with any error if there is no token. If the error has a finite `retryAfterMs`, the next attempt waits that
   * long. Two codes of a `TokenError` are special: `ERR_TOKEN_UNSUPPORTED` means that the server has no TokenRequest
   * API, `ERR_TOKEN_CLIENT` that this client cannot work and must not be retried.
   */
  requestToken(request: TokenRequest, options: { readonly signal: AbortSignal }): Promise<TokenAnswer>;
}

/** The claims of a JWT, RFC 7519. They are not verified. */
export interface TokenClaims {
  readonly iss?: string;
  readonly sub?: string;
  readonly aud?: string | string[];
  readonly jti?: string;
  /** Not before, Unix seconds. */
  readonly nbf?: number;
  /** Expires, Unix seconds. */
  readonly exp?: number;
  /** Issued, Unix seconds. */
  readonly iat?: number;
  readonly [claim: string]: unknown;
}
