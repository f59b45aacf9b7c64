import { unavailable } from './optional-package.js';
import { ParseFailure, type ConfigParser } from './parser.js';

/**
 * TOML 1.0 by the optional package `smol-toml`, which is loaded when first used. Duplicate keys are refused, dates
 * become text. The package's messages quote the text, so only the place is shown.
 */
export const tomlParser: ConfigParser = {
  name: 'TOML',
  async parse(text) {
    const { parse, TomlError } = await import('smol-toml').catch(unavailable('smol-toml', '1.3 or later'));
    try {
      return parse(text);
    } catch (error) {
      throw new ParseFailure(
        'not valid TOML, or a key is defined twice',
        error instanceof TomlError ? error : {},
      );
    }
  },
};
