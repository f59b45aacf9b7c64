import type { ConfigParser, ParseOptions } from './parser.js';
import { parseFailure } from './problems.js';
import { placeAt } from './places.js';

/** A blank line or a comment, or the rest of a line after a value. */
const NOTHING = /[^\S\n]*(?:#[^\n]*)?(?:\n|$)/y;

/** An assignment up to its value. */
const ASSIGNMENT = /[^\S\n]*(?:export[^\S\n]+)?([\w.-]+)(?:[^\S\n]*=|:[^\S\n]+)[^\S\n]*/y;

/** A quoted value may span lines. */
const QUOTED = /'(?:\\'|[^'])*'|"(?:\\"|[^"])*"|`(?:\\`|[^`])*`/y;

/** Any other value. One that only begins with a quote is a mistake. */
const PLAIN = /(?!['"`])[^#\n]*/y;

/** A longer list would not be read. */
const MAX_WARNINGS = 100;

/** An assignment. */
interface Assigned {
  readonly value: string;
  /** Where it begins in the text. */
  readonly offset: number;
}

/**
 * Parses `KEY=value` lines by the rules of the package `dotenv`. The map is flat, every value is a string, and the
 * process environment is not changed. The package skips lines that it does not understand, guesses where quotes end,
 * and takes the last value of a repeated key; this parser refuses these. As in the package, a `#` ends an unquoted value
 * even without white space before it, where docker and kubectl keep it: that is a warning.
 */
export const dotenvParser: ConfigParser = {
  name: 'dotenv',
  parse(text, options) {
    const values = assignmentsIn(unixLines(text), options);
    return Object.fromEntries([...values].map(([key, { value }]) => [key, value]));
  },
  placeOf(text, path) {
    const lines = unixLines(text);
    const found = path[0] === undefined ? undefined : assignmentsIn(lines).get(path[0]);
    return found && { line: placeAt(lines, found.offset).line };
  },
};

function unixLines(text: string): string {
  return text.replaceAll(/\r\n?/g, '\n');
}

function assignmentsIn(text: string, { warn }: ParseOptions = {}): ReadonlyMap<string, Assigned> {
  const values = new Map<string, Assigned>();
  let at = 0;
  let warnings = 0;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found) at = pattern.lastIndex;
    return found;
  };
  while (at < text.length) {
    if (take(NOTHING)) continue;
    const offset = at;
    const refuse = (message: string): never => {
      throw parseFailure(message, { line: placeAt(text, offset).line });
    };
    const key = take(ASSIGNMENT)?.[1] ?? refuse('not valid dotenv: expected KEY=value');
    if (values.has(key)) refuse(`duplicate key "${key}"`);
    const quoted = take(QUOTED)?.[0];
    const value = quoted === undefined ? take(PLAIN)?.[0].trim() : unquoted(quoted);
    const isCut = quoted === undefined && text[at] === '#' && /\S/.test(text.charAt(at - 1));
    if (isCut && warn && warnings < MAX_WARNINGS) {
      warnings += 1;
      const message = `${key}: its value ends before the "#", as in dotenv; put it in quotes if the "#" belongs to it`;
      warn({ code: 'comment', message, ...placeAt(text, at) });
    }
    if (value === undefined || !take(NOTHING)) return refuse('not valid dotenv: ambiguous quotes');
    values.set(key, { value, offset });
  }
  return values;
}

function unquoted(text: string): string {
  const value = text.slice(1, -1);
  return text.startsWith('"')
    ? value.replaceAll(String.raw`\n`, '\n').replaceAll(String.raw`\r`, '\r')
    : value;
}
