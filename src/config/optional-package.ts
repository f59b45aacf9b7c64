import { ConfigError, errnoOf } from '../core/errors.js';

/**
 * A package that is installed only by those who need it.
 * @throws {ConfigError} (rejects) `ERR_CONFIG_PACKAGE` when it is not installed.
 */
export async function optionalPackage<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (errnoOf(error) !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new ConfigError(
      'ERR_CONFIG_PACKAGE',
      `the package "${name}" is needed for this format and not installed; run: npm install ${name}`,
    );
  }
}
