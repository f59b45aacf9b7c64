import type * as Jsonc from 'jsonc-parser';

import { exportsOf, PackageError } from '../core/package-error.js';
import { MAX_DEPTH } from './config-value.js';
import type { ConfigParser } from './parser.js';
import { isUnsafeNumber, parseFailure, UNSAFE_NUMBER } from './problems.js';

/**
 * Parses JSON (RFC 8259). Stricter than `JSON.parse`: duplicate keys are refused. The package `jsonc-parser` is loaded on
 * first use.
 */
export const jsonParser: ConfigParser = {
  name: 'JSON',
  async parse(text) {
    check(await load(), text);
    return JSON.parse(text) as unknown;
  },
};

async function load(): Promise<typeof Jsonc> {
  try {
    return exportsOf(await import('jsonc-parser'));
  } catch (cause) {
    throw new PackageError('jsonc-parser', '3.3 or later', cause);
  }
}

/** Replaces `JSON.parse`, which accepts duplicate keys, and whose messages quote the text, often without the place. */
function check({ printParseErrorCode, visit }: typeof Jsonc, text: string): void {
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
    { disallowComments: true },
  );
}
