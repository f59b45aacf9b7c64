import { isUnsafeNumber, MAX_DEPTH, notAllowed, UNSAFE_NUMBER } from './config-value.js';
import type { ConfigParser } from './parser.js';
import { parseFailure } from './problems.js';
import { placeAt, type Place } from './places.js';

/** Parses JSON (RFC 8259). Stricter than `JSON.parse`: duplicate keys are refused. */
export const jsonParser: ConfigParser = {
  name: 'JSON',
  parse: (text) => nodeOf(text, false)?.value,
  placeOf: (text, path) => placeIn(text, path, false),
};

/**
 * Parses JSON with comments and trailing commas, as in `tsconfig.json`; otherwise as strictly as `jsonParser`. A text
 * without a value, such as one in which everything is commented out, is an empty map.
 */
export const jsoncParser: ConfigParser = {
  name: 'JSONC',
  parse: (text) => (nodeOf(text, true) ?? { value: {} }).value,
  placeOf: (text, path) => placeIn(text, path, true),
};

/** A value of a text. */
interface Node {
  readonly value: unknown;
  /** Where it begins. */
  readonly offset: number;
  /** Of a map or an array, by key or index. */
  readonly members?: ReadonlyMap<string, Node>;
}

const SPACE = /[ \t\n\r]*/y;
const COMMENT = /\/\/[^\n\r]*|\/\*[^]*?\*\//y;
/** What stands for itself in a string. */
const CHARACTERS = /[^"\\\u0000-\u001f]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[\da-f]{4})/iy;
const BROKEN_ESCAPE = /\\u?/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[-+]?\d+)?/iy;
const WORD = /[^\s{}[\],:"/]+/y;
const WORDS: Readonly<Record<string, unknown>> = { true: true, false: false, null: null };

function placeIn(text: string, path: readonly string[], isLenient: boolean): Place | undefined {
  let node = nodeOf(text, isLenient);
  for (const key of path) node = node?.members?.get(key);
  return node && placeAt(text, node.offset);
}

/**
 * Reads a text from its beginning to its end. `JSON.parse` accepts duplicate keys, and its messages quote the text, often
 * without the place.
 * @param isLenient whether comments, commas at the end and an empty text are allowed; undefined is the value of the last
 * @throws {ConfigError} `ERR_CONFIG_PARSE` with line and column.
 */
function nodeOf(text: string, isLenient: boolean): Node | undefined {
  let at = 0;
  const refuse = (what: string, offset = at): never => {
    throw parseFailure(`not valid JSON: ${what}`, placeAt(text, offset));
  };
  const take = (pattern: RegExp): string => {
    pattern.lastIndex = at;
    const [found = ''] = pattern.exec(text) ?? [];
    at += found.length;
    return found;
  };
  /** The next character that is neither white space nor in a comment. */
  const next = (): string => {
    take(SPACE);
    while (isLenient && take(COMMENT) !== '') take(SPACE);
    if (text[at] === '/') refuse(isLenient ? 'unexpected end of comment' : 'invalid comment token');
    return text.charAt(at);
  };
  const takes = (character: string): boolean => {
    if (next() !== character) return false;
    at += 1;
    return true;
  };
  const readString = (): string => {
    const offset = at;
    at += 1;
    do take(CHARACTERS);
    while (take(ESCAPE) !== '');
    const escape = take(BROKEN_ESCAPE);
    if (escape !== '') refuse(escape.length > 1 ? 'invalid unicode' : 'invalid escape character', offset);
    const end = text.charAt(at);
    if (end !== '"') refuse(/[\n\r]|^$/.test(end) ? 'unexpected end of string' : 'invalid character', offset);
    at += 1;
    return JSON.parse(text.slice(offset, at)) as string;
  };
  const readPlain = (): unknown => {
    const offset = at;
    const number = take(NUMBER);
    if (number === '') {
      const word = take(WORD);
      if (Object.hasOwn(WORDS, word)) return WORDS[word];
      refuse(word === '' ? 'value expected' : 'invalid symbol', offset);
    }
    const value = Number(number);
    if (isUnsafeNumber(value, number)) throw parseFailure(UNSAFE_NUMBER, placeAt(text, offset));
    return value;
  };
  /** The key of a member, up to its value. */
  const readKey = (members: ReadonlyMap<string, Node>): string => {
    if (next() !== '"') refuse('property name expected');
    const offset = at;
    const key = readString();
    if (members.has(key)) refuse(`duplicate key "${key}"`, offset);
    // It would become the prototype.
    if (key === '__proto__') refuse(notAllowed(key), offset);
    if (!takes(':')) refuse('colon expected');
    return key;
  };
  const readContainer = (open: string, depth: number): Node => {
    const offset = at;
    if (depth > MAX_DEPTH) refuse(`nested more than ${MAX_DEPTH} levels deep`);
    const [isMap, close] = open === '{' ? [true, '}'] : [false, ']'];
    const members = new Map<string, Node>();
    at += 1;
    while (!takes(close)) {
      if (at === text.length) refuse(`close ${isMap ? 'brace' : 'bracket'} expected`);
      if (members.size > 0) {
        if (!takes(',')) refuse('comma expected');
        if (isLenient && takes(close)) break;
      }
      members.set(isMap ? readKey(members) : String(members.size), readNode(depth));
    }
    const values = [...members].map(([key, { value }]) => [key, value] as const);
    return { value: isMap ? Object.fromEntries(values) : values.map(([, value]) => value), offset, members };
  };
  const readNode = (depth: number): Node => {
    const first = next();
    if (first === '{' || first === '[') return readContainer(first, depth + 1);
    const offset = at;
    return { value: first === '"' ? readString() : readPlain(), offset };
  };

  if (next() === '' && isLenient) return undefined;
  const node = readNode(0);
  if (next() !== '') refuse('end of file expected');
  return node;
}
