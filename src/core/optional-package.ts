import { inspect } from 'node:util';

import { errnoOf } from './errno.js';

/**
 * Handles a missing optional package: throws the error of the entry point that needs it. The message says in one
 * sentence what is wrong and what to install.
 *
 *     const yaml = await import('yaml').catch(unavailable('yaml', '2.6 or later'));
 *
 * Keep `catch` directly at the `import()`: bundlers accept a missing package only there. No cause means that the package
 * was loaded but its version is not supported.
 *
 * @param failure creates the error for a message.
 */
export function whenUnavailable(
  failure: (message: string, options?: ErrorOptions) => Error,
): (name: string, versions: string) => (cause?: unknown) => never {
  return (name, versions) => (cause) => {
    throw failure(explain(name, versions, cause), cause === undefined ? undefined : { cause });
  };
}

function explain(name: string, versions: string, cause: unknown): string {
  if (cause === undefined) {
    return `the installed version of the package "${name}" does not work here, ${versions} does; run: npm install ${name}@latest`;
  }
  if (errnoOf(cause) === 'ERR_MODULE_NOT_FOUND') {
    return `the package "${name}" (${versions}) is needed and not installed; run: npm install ${name}`;
  }
  const reason = cause instanceof Error ? cause.message : inspect(cause);
  return `the package "${name}" (${versions}) is needed and cannot be loaded (${reason}); to reinstall it, run: npm install ${name}`;
}
