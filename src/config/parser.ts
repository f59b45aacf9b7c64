/** Parses bytes into values. */
import { ConfigError } from './config-error.js';
import { hasMethods } from '../core/options.js';
import { configMapOf, type ConfigMap } from './config-value.js';
import { configError } from './problems.js';

/** A parser for one format. Encoding, size and forbidden keys are checked for all formats elsewhere. */
export interface ConfigParser {
  /** The name of the format in problems, such as `JSON`. */
  readonly name: string;
  /**
   * Returns the values, a map, or a promise of them. If it throws, the numeric `line` and `column` of the error are
   * reported; the message is not, since it may quote a secret.
   */
  parse(text: string): unknown;
}

/** Thrown by the parsers of this library. Its message quotes no values, so it is safe to report. */
export class ParseFailure extends Error {
  readonly line: number | undefined;
  readonly column: number | undefined;

  constructor(
    message: string,
    at: { readonly line?: number | undefined; readonly column?: number | undefined } = {},
  ) {
    super(message);
    this.line = at.line;
    this.column = at.column;
  }
}

/** The line of an offset, from 1. */
export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf('\n'); at !== -1 && at < offset; at = text.indexOf('\n', at + 1)) line += 1;
  return line;
}

export function isParser(value: unknown): value is ConfigParser {
  return hasMethods(value, ['parse']) && typeof (value as { readonly name?: unknown }).name === 'string';
}

/**
 * Parses bytes: UTF-8, with or without a byte order mark, not empty.
 * @param source the name of the source in problems.
 * @throws {ConfigError} (rejects) `ERR_CONFIG_PARSE`, `ERR_CONFIG_REFUSED` or `ERR_CONFIG_PACKAGE`.
 */
export async function parseBytes(
  bytes: Uint8Array,
  parser: ConfigParser,
  source: string,
): Promise<ConfigMap> {
  const text = textOf(bytes, source);
  if (text.trim() === '') throw configError('ERR_CONFIG_PARSE', source, 'the text is empty');
  try {
    return configMapOf(await parser.parse(text));
  } catch (error) {
    throw parseError(error, parser, source);
  }
}

/**
 * Decodes UTF-8, without a byte order mark.
 * @throws {ConfigError} `ERR_CONFIG_PARSE` when it is not UTF-8.
 */
export function textOf(bytes: Uint8Array, source: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw configError('ERR_CONFIG_PARSE', source, 'the text is not valid UTF-8');
  }
}

/** Has no `cause`: an error of a parser may quote the text. */
function parseError(error: unknown, parser: ConfigParser, source: string): ConfigError {
  if (error instanceof ConfigError) {
    const [problem] = error.problems;
    return configError(error.code, source, problem?.message ?? error.message, { path: problem?.path });
  }
  const { line, column } = Object(error) as { readonly line?: unknown; readonly column?: unknown };
  const where = { line: positive(line), column: positive(column) };
  const message = error instanceof ParseFailure ? error.message : `the ${parser.name} parser failed`;
  return configError('ERR_CONFIG_PARSE', source, message, where);
}

function positive(value: unknown): number | undefined {
  return typeof value === 'number' && value > 0 ? value : undefined;
}
