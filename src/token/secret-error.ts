import { ResilientError } from '../core/resilient-error.js';

/** Why the files of a secret have no usable value. */
export type SecretErrorCode =
  /** The file, or a key of the directory, does not exist. */
  | 'ERR_SECRET_MISSING'
  | 'ERR_SECRET_EMPTY'
  /** The file is larger than 1 MiB. */
  | 'ERR_SECRET_TOO_LARGE'
  /** The bytes are not UTF-8, the default of the option `encoding`. */
  | 'ERR_SECRET_ENCODING'
  /** There is no value yet; `cause` says why. */
  | 'ERR_SECRET_UNAVAILABLE';

/** A secret on disk cannot be used. The last good value is kept; watching goes on. */
export class SecretError extends ResilientError {
  override readonly name = 'SecretError';
  readonly code: SecretErrorCode;

  constructor(code: SecretErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
