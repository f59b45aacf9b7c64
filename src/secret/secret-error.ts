import { CodedError, recognize } from '../core/errors/resilient-error.js';

/** A secret on disk cannot be used. The last good value is kept, and watching continues. */
export class SecretError extends CodedError<'SecretError'> {
  override readonly name = 'SecretError';
}
recognize(SecretError, 'SecretError');
