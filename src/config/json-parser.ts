import type * as Jsonc from 'jsonc-parser';

import { exportsOf, PackageError } from '../core/errors/package-error.js';
import { isUnsafeNumber, MAX_DEPTH, notAllowed, UNSAFE_NUMBER } from './config-value.js';
import type { ConfigParser } from './parser.js';
import { parseFailure } from './problems.js';
import { placeAt, type Place } from './places.js';

/**
 * Parses JSON (RFC 8259). Stricter than `JSON.parse`: duplicate keys are refused. The package `jsonc-parser` is loaded on
 * first use.
 */
export const jsonParser: ConfigParser = {
  name: 'JSON',
  async parse(text) {
    check(await load(), text, { disallowComments: true });
    return JSON.parse(text) as unknown;
  },
  placeOf,
};

/**
 * Parses JSON with comments and trailing commas, as in `tsconfig.json`; otherwise as strictly as `jsonParser`. A text
 * without a value, such as one in which everything is commented out, is an empty map.
 */
export const jsoncParser: ConfigParser = {
  name: 'JSONC',
  async parse(text) {
    const jsonc = await load();
    const options = { allowTrailingComma: true, allowEmptyContent: true };
    check(jsonc, text, options);
    const values: unknown = jsonc.parse(text, [], options);
    return values === undefined ? {} : values;
  },
  placeOf,
};

async function load(): Promise<typeof Jsonc> {
  try {
    return exportsOf(await import('jsonc-parser'));
  } catch (cause) {
    throw new PackageError('jsonc-parser', '3.3 or later', cause);
  }
}

async function placeOf(text: string, path: readonly string[]): Promise<Place | undefined> {
  const { findNodeAtLocation, parseTree } = await load();
  const tree = parseTree(text, [], { allowTrailingComma: true });
  // An index of an array is a number there, and a key a string.
  let node = tree;
  for (const key of path) {
    node = node && findNodeAtLocation(node, [node.type === 'array' ? Number(key) : key]);
  }
  return node && placeAt(text, node.offset);
}

/** Replaces `JSON.parse`, which accepts duplicate keys, and whose messages quote the text, often without the place. */
function check(
  { printParseErrorCode, visit }: typeof Jsonc,
  text: string,
  options: Jsonc.ParseOptions,
): void {
  /** The keys of each open map and array. */
  const open: Set<string>[] = [];
  const refuse = (message: string, line: number, character: number): never => {
    throw parseFailure(`not valid JSON: ${message}`, { line: line + 1, column: character + 1 });
  };
  const enter = (_offset: number, _length: number, line: number, character: number): void => {
    if (open.push(new Set()) > MAX_DEPTH)
      refuse(`nested more than ${MAX_DEPTH} levels deep`, line, character);
  };
  const leave = (): unknown => open.pop();
  visit(
    text,
    {
      onObjectBegin: enter,
      onObjectEnd: leave,
      onArrayBegin: enter,
      onArrayEnd: leave,
      onObjectProperty: (key, _offset, _length, line, character) => {
        const keys = open.at(-1);
        if (keys?.has(key)) refuse(`duplicate key "${key}"`, line, character);
        // `parse` of the package would make it the prototype.
        if (key === '__proto__') refuse(notAllowed(key), line, character);
        keys?.add(key);
      },
      onLiteralValue: (value, offset, length, line, character) => {
        if (!isUnsafeNumber(value, text.slice(offset, offset + length))) return;
        throw parseFailure(UNSAFE_NUMBER, { line: line + 1, column: character + 1 });
      },
      onError: (code, _offset, _length, line, character) => {
        const words = printParseErrorCode(code).replace(/\B[A-Z]/g, (letter) => ` ${letter}`);
        refuse(words.toLowerCase(), line, character);
      },
    },
    options,
  );
}
