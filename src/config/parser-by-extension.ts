import { basename, extname } from 'node:path';

import { dotenvParser } from './dotenv-parser.js';
import { jsoncParser, jsonParser } from './json-parser.js';
import type { ConfigParser } from './parser.js';
import { tomlParser } from './toml-parser.js';
import { yamlParser } from './yaml-parser.js';

const PARSERS: Readonly<Record<string, ConfigParser>> = {
  '.json': jsonParser,
  '.jsonc': jsoncParser,
  '.yaml': yamlParser,
  '.yml': yamlParser,
  '.toml': tomlParser,
  '.env': dotenvParser,
};

/** The advice when `parserByExtension` finds no parser. */
export const PASS_A_PARSER = `pass the option "parser"; only ${Object.keys(PARSERS).join(', ')} are recognized by extension`;

/** The parser for the extension of a file name. Files such as `.env` and `.env.local` are dotenv files as well. */
export function parserByExtension(path: string): ConfigParser | undefined {
  const name = basename(path).toLowerCase();
  const extension = name === '.env' || name.startsWith('.env.') ? '.env' : extname(name);
  return Object.hasOwn(PARSERS, extension) ? PARSERS[extension] : undefined;
}
