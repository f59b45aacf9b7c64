import { ConfigError } from './config-error.js';
import { whenUnavailable } from '../core/optional-package.js';

/** Throws a `ConfigError` with the code `ERR_CONFIG_PACKAGE`. */
export const unavailable = whenUnavailable(
  (message, options) => new ConfigError('ERR_CONFIG_PACKAGE', message, options),
);
