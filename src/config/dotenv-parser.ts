import type * as Dotenv from 'dotenv';

import { PackageError } from '../core/package-error.js';
import { lineAt, ParseFailure } from './parse-failure.js';
import type { ConfigParser } from './parser.js';

/** A blank line or a comment, or the rest of a line after a value. */
const NOTHING = /[^\S\n]*(?:#[^\n]*)?(?:\n|$)/y;

/** An assignment up to its value, by the rules of the package. */
const ASSIGNMENT = /[^\S\n]*(?:export[^\S\n]+)?([\w.-]+)(?:[^\S\n]*=|:[^\S\n]+)[^\S\n]*/y;

/** A quoted value may span lines. */
const QUOTED = /'(?:\\'|[^'])*'|"(?:\\"|[^"])*"|`(?:\\`|[^`])*`/y;

const REST_OF_LINE = /[^\n]*(?:\n|$)/y;

/**
 * Parses `KEY=value` lines with the optional package `dotenv`, which is loaded on first use. The map is flat, every
 * value is a string, and the process environment is not changed. The package skips lines that it does not understand,
 * and takes the last value of a repeated key; this parser refuses both.
 */
export const dotenvParser: ConfigParser = {
  name: 'dotenv',
  async parse(text) {
    const { parse } = await loadDotenv();
    const lines = text.replaceAll(/\r\n?/g, '\n');
    const keys = keysOf(lines);
    const values = parse(lines);
    const agrees =
      Object.keys(values).length === keys.size && [...keys].every((key) => Object.hasOwn(values, key));
    if (!agrees) throw new ParseFailure('not valid dotenv: ambiguous quotes or keys');
    return values;
  },
};

async function loadDotenv(): Promise<typeof Dotenv> {
  try {
    return await import('dotenv');
  } catch (cause) {
    throw new PackageError('dotenv', '16 or later', cause);
  }
}

/** The keys of the text. Throws if a line is not understood. */
function keysOf(text: string): ReadonlySet<string> {
  const keys = new Set<string>();
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found) at = pattern.lastIndex;
    return found;
  };
  while (at < text.length) {
    if (take(NOTHING)) continue;
    const start = at;
    const key = take(ASSIGNMENT)?.[1];
    if (key === undefined)
      throw new ParseFailure('not valid dotenv: expected KEY=value', { line: lineAt(text, start) });
    if (keys.has(key)) throw new ParseFailure(`duplicate key "${key}"`, { line: lineAt(text, start) });
    keys.add(key);
    if (!take(QUOTED) || !take(NOTHING)) take(REST_OF_LINE);
  }
  return keys;
}
