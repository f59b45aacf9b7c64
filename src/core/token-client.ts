/** What is asked of the TokenRequest API. */
export interface TokenRequest {
  /** Empty: the API server's own audience. */
  readonly audiences: readonly string[];
  /** The server may give a shorter or, for audiences of its own, a longer one. */
  readonly expirationSeconds: number;
}

/** What the TokenRequest API answers: its `status`. */
export interface TokenAnswer {
  readonly token: string;
  /** RFC 3339, a `Date`, or epoch ms. */
  readonly expirationTimestamp: string | Date | number;
}

/**
 * Asks an API server for tokens. It should read its own credentials anew for each request: what it
 * authenticates with expires too.
 */
export interface TokenClient {
  /**
   * Rejects with anything when there is no token. A finite `retryAfterMs` on what it rejects with is honoured;
   * `code` `ERR_TOKEN_UNSUPPORTED` (a `TokenError`) says that the server has no TokenRequest API at all.
   */
  requestToken(request: TokenRequest, options: { readonly signal: AbortSignal }): Promise<TokenAnswer>;
}
