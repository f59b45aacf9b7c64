import { basename, extname } from 'node:path';

import { dotenvParser } from './dotenv-parser.js';
import { jsonParser } from './json-parser.js';
import type { ConfigParser } from './parser.js';
import { tomlParser } from './toml-parser.js';
import { yamlParser } from './yaml-parser.js';

const PARSERS: Readonly<Record<string, ConfigParser>> = {
  '.json': jsonParser,
  '.yaml': yamlParser,
  '.yml': yamlParser,
  '.toml': tomlParser,
  '.env': dotenvParser,
};

/** What to do when `parserByExtension` finds none. */
export const PASS_A_PARSER =
  'pass a parser: jsonParser, yamlParser, tomlParser, dotenvParser or your own; ' +
  'only .json, .yaml, .yml, .toml and .env are recognized by themselves';

/** The parser for the extension of a file name. `.env` and `.env.local` are dotenv files, too. */
export function parserByExtension(path: string): ConfigParser | undefined {
  const name = basename(path).toLowerCase();
  const extension = name === '.env' || name.startsWith('.env.') ? '.env' : extname(name);
  return Object.hasOwn(PARSERS, extension) ? PARSERS[extension] : undefined;
}
