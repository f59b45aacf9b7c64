import type * as Toml from 'smol-toml';

import { PackageError } from '../core/errors/package-error.js';
import { UNSAFE_NUMBER } from './config-value.js';
import type { ConfigParser } from './parser.js';
import { parseFailure } from './problems.js';

const INVALID = 'not valid TOML, or a duplicate key';

/**
 * Parses TOML 1.0 with the optional package `smol-toml`, which is loaded on first use. Duplicate keys are refused;
 * dates become strings. The package's messages quote the text, so only line and column are reported.
 */
export const tomlParser: ConfigParser = {
  name: 'TOML',
  async parse(text) {
    const { parse, TomlError } = await loadToml();
    try {
      return parse(text);
    } catch (error) {
      if (!(error instanceof TomlError)) throw parseFailure(INVALID);
      throw parseFailure(error.message.includes('losslessly') ? UNSAFE_NUMBER : INVALID, error);
    }
  },
};

async function loadToml(): Promise<typeof Toml> {
  try {
    return await import('smol-toml');
  } catch (cause) {
    throw new PackageError('smol-toml', '1.3 or later', cause);
  }
}
