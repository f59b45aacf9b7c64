import type { ConfigParser } from './parser.js';
import { parseFailure } from './problems.js';

/** A blank line or a comment, or the rest of a line after a value. */
const NOTHING = /[^\S\n]*(?:#[^\n]*)?(?:\n|$)/y;

/** An assignment up to its value. */
const ASSIGNMENT = /[^\S\n]*(?:export[^\S\n]+)?([\w.-]+)(?:[^\S\n]*=|:[^\S\n]+)[^\S\n]*/y;

/** A quoted value may span lines. */
const QUOTED = /'(?:\\'|[^'])*'|"(?:\\"|[^"])*"|`(?:\\`|[^`])*`/y;

/** Any other value. One that only begins with a quote is a mistake. */
const PLAIN = /(?!['"`])[^#\n]*/y;

/**
 * Parses `KEY=value` lines by the rules of the package `dotenv`. The map is flat, every value is a string, and the
 * process environment is not changed. The package skips lines that it does not understand, guesses where quotes end,
 * and takes the last value of a repeated key; this parser refuses these.
 */
export const dotenvParser: ConfigParser = {
  name: 'dotenv',
  parse: (text) => Object.fromEntries(valuesIn(text.replaceAll(/\r\n?/g, '\n'))),
};

function valuesIn(text: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
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
    const refuse = (message: string): never => {
      throw parseFailure(message, { line: text.slice(0, start).split('\n').length });
    };
    const key = take(ASSIGNMENT)?.[1] ?? refuse('not valid dotenv: expected KEY=value');
    if (values.has(key)) refuse(`duplicate key "${key}"`);
    const quoted = take(QUOTED)?.[0];
    const value = quoted === undefined ? take(PLAIN)?.[0].trim() : unquoted(quoted);
    if (value === undefined || !take(NOTHING)) return refuse('not valid dotenv: ambiguous quotes');
    values.set(key, value);
  }
  return values;
}

function unquoted(text: string): string {
  const value = text.slice(1, -1);
  return text.startsWith('"')
    ? value.replaceAll(String.raw`\n`, '\n').replaceAll(String.raw`\r`, '\r')
    : value;
}
