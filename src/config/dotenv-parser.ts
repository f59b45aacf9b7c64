import { unavailable } from './optional-package.js';
import { ParseFailure, type ConfigParser } from './parser.js';

/** A blank line or a comment; what is left of a line after its value. */
const NOTHING = /[^\S\n]*(?:#[^\n]*)?(?:\n|$)/y;

/** An assignment up to its value, as the package takes it. */
const ASSIGNMENT = /[^\S\n]*(?:export[^\S\n]+)?([\w.-]+)(?:[^\S\n]*=|:[^\S\n]+)[^\S\n]*/y;

/** A value in quotes may run over several lines. */
const QUOTED = /'(?:\\'|[^'])*'|"(?:\\"|[^"])*"|`(?:\\`|[^`])*`/y;

const REST_OF_LINE = /[^\n]*(?:\n|$)/y;

/**
 * `KEY=value` lines by the optional package `dotenv`, which is loaded when first used. The map is flat and every
 * value a string; nothing is put into the environment. The package passes over lines it does not understand and
 * takes the last of two equal keys; here both are refused.
 */
export const dotenvParser: ConfigParser = {
  name: 'dotenv',
  async parse(text) {
    const { parse } = await import('dotenv').catch(unavailable('dotenv', '16 or later'));
    const lines = text.replaceAll(/\r\n?/g, '\n');
    const keys = keysOf(lines);
    const values = parse(lines);
    const isAsRead =
      Object.keys(values).length === keys.size && [...keys].every((key) => Object.hasOwn(values, key));
    if (!isAsRead) throw new ParseFailure('not valid dotenv: quotes or keys that cannot be told apart');
    return values;
  },
};

/** The keys, once it is clear that each line is understood. */
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
    const line = text.slice(0, at).split('\n').length;
    const key = take(ASSIGNMENT)?.[1];
    if (key === undefined) throw new ParseFailure('not valid dotenv: a line without KEY=', { line });
    if (keys.has(key)) throw new ParseFailure(`the key "${key}" is there twice`, { line });
    keys.add(key);
    if (!take(QUOTED) || !take(NOTHING)) take(REST_OF_LINE);
  }
  return keys;
}
