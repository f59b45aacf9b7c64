import { inspect } from '../ports/builtins.js';
import { errnoOf } from './errno.js';
import { CodedError, recognize } from './resilient-error.js';

/**
 * An optional package is not installed, or its version is not supported. The message says what is wrong and what to
 * install.
 *
 *     try {
 *       return await import('yaml');
 *     } catch (cause) {
 *       throw new PackageError('yaml', '2.6 or later', cause);
 *     }
 *
 * Keep the `import()` directly in a `try`; anywhere else, some bundlers do not accept a missing package.
 */
export class PackageError extends CodedError<'PackageError'> {
  override readonly name = 'PackageError';

  /** @param cause undefined: the package was loaded, but its version is not supported. */
  constructor(name: string, versions: string, cause?: unknown) {
    super('ERR_PACKAGE', explain(name, versions, cause), { cause });
  }
}
recognize(PackageError, 'PackageError');

/**
 * What a CommonJS package exports. In a bundle that esbuild splits, `import()` gives it as the property `default` only.
 */
export function exportsOf<Module extends object>(module: Module): Module {
  return (module as { default?: Module }).default ?? module;
}

function explain(name: string, versions: string, cause: unknown): string {
  if (cause === undefined) {
    return `the installed version of the package "${name}" is not supported (${versions} is); run: npm install ${name}@latest`;
  }
  if (errnoOf(cause) === 'ERR_MODULE_NOT_FOUND') {
    return `the package "${name}" (${versions}) is required but not installed; run: npm install ${name}`;
  }
  const reason = cause instanceof Error ? cause.message : inspect(cause);
  return `the package "${name}" (${versions}) is required but cannot be loaded (${reason}): this version of it may need a newer Node.js than ${process.versions.node}, so install an older one; if it is damaged, run: npm install ${name}`;
}
