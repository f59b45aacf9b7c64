import type { CodeOf } from './error-codes.js';
import { CodedError, recognize } from './resilient-error.js';

export type TokenErrorCode = CodeOf<'TokenError'>;

/** There is no usable token, or it could not be delivered. It may recover by itself; refreshing continues. */
export class TokenError extends CodedError<'TokenError'> {
  override readonly name = 'TokenError';
  /** How long the server asked to wait (`Retry-After`), ms; undefined unless it is a number above 0. */
  readonly retryAfterMs: number | undefined;

  constructor(
    code: TokenErrorCode,
    message: string,
    options?: ErrorOptions & { readonly retryAfterMs?: number | undefined },
  ) {
    super(code, message, options);
    const retryAfterMs: unknown = options?.retryAfterMs;
    this.retryAfterMs = typeof retryAfterMs === 'number' && retryAfterMs > 0 ? retryAfterMs : undefined;
  }
}
recognize(TokenError, 'TokenError');
