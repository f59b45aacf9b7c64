import type * as Yaml from 'yaml';

import { exportsOf, PackageError } from './package-error.js';

/** Versions before 2.6 ignore `stringKeys` silently, and version 1 has another API. */
const VERSIONS = '2.6 or later';

/** @throws {PackageError} if the package is not installed or too old. */
export async function loadYaml(): Promise<typeof Yaml> {
  let yaml: Partial<typeof Yaml>;
  try {
    yaml = exportsOf(await import('yaml'));
  } catch (cause) {
    throw new PackageError('yaml', VERSIONS, cause);
  }
  const refusesKeys = (yaml.parseDocument?.('? [key]', { stringKeys: true }).errors.length ?? 0) > 0;
  if (!refusesKeys) throw new PackageError('yaml', VERSIONS);
  return yaml;
}
