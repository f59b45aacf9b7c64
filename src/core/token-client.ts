import { inspect } from 'node:util';

/** What a `TokenCredential` is made of. */
export interface TokenCredentialFields {
  /** The token itself. */
  readonly value: string;
  /** The file it was read from. */
  readonly path: string;
  /** When the file was first seen to hold it, epoch ms. */
  readonly seenAt: number;
}

/** A token that was just seen in a file and can authenticate a request. Its printed forms leave the token out. */
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

/** What is asked of the TokenRequest API. */
export interface TokenRequest {
  /** Empty: the API server's own audience. */
  readonly audiences: readonly string[];
  /** The server may give a shorter or, for audiences of its own, a longer one. */
  readonly expirationSeconds: number;
  /**
   * The newest projected token that the caller knows of. After a rotation of the signing key it may be accepted while
   * the client's own credentials are not yet. A client that has others may ignore it.
   */
  readonly credential?: TokenCredential | undefined;
}

/** What the TokenRequest API answers: its `status`. */
export interface TokenAnswer {
  readonly token: string;
  /** RFC 3339, a `Date`, or epoch ms. */
  readonly expirationTimestamp: string | Date | number;
}

/**
 * Asks an API server for tokens. It should read its own credentials anew for each request: they expire, too.
 */
export interface TokenClient {
  /**
   * Rejects with anything when there is no token. A finite `retryAfterMs` on what it rejects with is honoured. Two codes
   * of a `TokenError` have a meaning of their own: `ERR_TOKEN_UNSUPPORTED` says that the server has no TokenRequest API at
   * all, `ERR_TOKEN_CLIENT` that this client cannot work and that trying again does not help.
   */
  requestToken(request: TokenRequest, options: { readonly signal: AbortSignal }): Promise<TokenAnswer>;
}
