import { TlsError } from './tls-error.js';
import { whenUnavailable } from '../core/optional-package.js';

/** Throws a `TlsError` with the code `ERR_TLS_PACKAGE`. */
export const unavailable = whenUnavailable(
  (message, options) => new TlsError('ERR_TLS_PACKAGE', message, options),
);
