import { ConfigError } from '../core/errors.js';
import { unavailablePackage } from '../core/optional-package.js';

/**
 * To be passed to `catch` right at the `import()` of an optional package: there, and only there, bundlers accept that
 * the package is missing.
 * @throws {ConfigError} `ERR_CONFIG_PACKAGE`
 */
export function unavailable(name: string, versions: string): (cause?: unknown) => never {
  return (cause) => {
    const message = unavailablePackage(name, versions, cause);
    throw new ConfigError('ERR_CONFIG_PACKAGE', message, ...(cause === undefined ? [] : [{ cause }]));
  };
}
