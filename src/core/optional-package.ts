import { inspect } from 'node:util';

import { errnoOf } from './errno.js';

/**
 * Explains in one sentence why an optional package cannot be used, and what to do.
 * @param versions the versions that work, as in "2.6 or later".
 * @param cause what `import()` rejected with; without it the package was loaded but has another version.
 */
export function unavailablePackage(name: string, versions: string, cause?: unknown): string {
  if (cause === undefined) {
    return `the installed version of the package "${name}" does not work here, ${versions} does; run: npm install ${name}@latest`;
  }
  if (errnoOf(cause) === 'ERR_MODULE_NOT_FOUND') {
    return `the package "${name}" (${versions}) is needed and not installed; run: npm install ${name}`;
  }
  const reason = cause instanceof Error ? cause.message : inspect(cause);
  return `the package "${name}" (${versions}) is needed and cannot be loaded (${reason}); to install it anew, run: npm install ${name}`;
}
