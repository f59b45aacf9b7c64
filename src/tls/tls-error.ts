import type { CodeOf } from '../core/errors/error-codes.js';
import { CodedError, recognize } from '../core/errors/resilient-error.js';

export type TlsErrorCode = CodeOf<'TlsError'>;

/** Certificates on disk cannot be used. The last good set is kept, and watching continues. */
export class TlsError extends CodedError<'TlsError'> {
  override readonly name = 'TlsError';
}
recognize(TlsError, 'TlsError');
