import type * as Yaml from 'yaml';

import { exportsOf, PackageError } from './package-error.js';

/** @throws {PackageError} if the package cannot be loaded, as in a bundle that left it out. */
export async function loadYaml(): Promise<typeof Yaml> {
  try {
    return exportsOf(await import('yaml'));
  } catch (cause) {
    throw new PackageError('yaml', '2.9 or later', cause);
  }
}
