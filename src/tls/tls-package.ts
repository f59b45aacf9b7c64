import { errnoOf } from '../core/errno.js';
import { TlsError } from '../core/errors.js';

/**
 * A package that is installed only by those who need it.
 * @throws {TlsError} (rejects) `ERR_TLS_PACKAGE` when it is not installed.
 */
export async function tlsPackage<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    if (errnoOf(cause) !== 'ERR_MODULE_NOT_FOUND') throw cause;
    const message = `The package "${name}" is needed and not installed; run: npm install ${name}`;
    throw new TlsError('ERR_TLS_PACKAGE', message, { cause });
  }
}
