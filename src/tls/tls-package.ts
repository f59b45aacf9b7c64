import { TlsError } from '../core/errors.js';
import { unavailablePackage } from '../core/optional-package.js';

/**
 * Makes of a failed `import()` of an optional package an error that says what to install. Used as its `.catch()`: only
 * then do bundlers leave an import alone that they cannot resolve.
 * @throws {TlsError} `ERR_TLS_PACKAGE`.
 */
export function unavailable(name: string, versions: string): (cause: unknown) => never {
  return (cause) => {
    throw new TlsError('ERR_TLS_PACKAGE', unavailablePackage(name, versions, cause), { cause });
  };
}
