/** How bytes become values. */
import { ConfigError, type ConfigErrorCode, type ConfigProblem } from '../core/errors.js';
import { hasMethods } from '../core/options.js';
import { configMapOf, type ConfigMap } from './config-value.js';

/** Reads one format. What is common to all formats (encoding, the limit, forbidden keys) is none of its business. */
export interface ConfigParser {
  /** Shown in problems, as `JSON`. */
  readonly name: string;
  /**
   * The values in a text, a map at the top. Throws, or rejects, when it cannot read it: numbers `line` and `column`
   * on what it throws are shown, its message is not, since it may quote a secret.
   */
  parse(text: string): unknown;
}

/** What a parser of this library throws: its message quotes no values, so it may be shown. */
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

/** Whether something is a parser. */
export function isParser(value: unknown): value is ConfigParser {
  return hasMethods(value, ['parse']) && typeof (value as { readonly name?: unknown }).name === 'string';
}

/**
 * The values in some bytes: UTF-8, with or without a byte order mark, and not empty.
 * @param source what to call them in problems.
 * @throws {ConfigError} (rejects) `ERR_CONFIG_PARSE`, `ERR_CONFIG_REFUSED` or `ERR_CONFIG_PACKAGE`.
 */
export async function parseBytes(
  bytes: Uint8Array,
  parser: ConfigParser,
  source: string,
): Promise<ConfigMap> {
  const text = textOf(bytes, source);
  if (text.trim() === '') throw configError('ERR_CONFIG_PARSE', source, 'it is empty');
  try {
    return configMapOf(await parser.parse(text));
  } catch (error) {
    throw parseError(error, parser, source);
  }
}

/**
 * The text in some bytes, without a byte order mark.
 * @throws {ConfigError} `ERR_CONFIG_PARSE` when it is not UTF-8.
 */
export function textOf(bytes: Uint8Array, source: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw configError('ERR_CONFIG_PARSE', source, 'it is not text in UTF-8');
  }
}

/** An error with one problem. */
export function configError(
  code: ConfigErrorCode,
  source: string,
  message: string,
  where: Pick<ConfigProblem, 'path' | 'line' | 'column'> = {},
): ConfigError {
  const problem: ConfigProblem = { code, source, message, ...where };
  return new ConfigError(code, problemText(problem), { problems: [problem] });
}

/** A problem in one line. */
export function problemText({ source, path, line, column, message }: ConfigProblem): string {
  const place = [source, line, column].filter((part) => part !== undefined).join(':');
  return `${place}: ${path?.length ? `${path.join('.')}: ` : ''}${message}`;
}

/** Without `cause`: what a parser throws may quote what it read. */
function parseError(error: unknown, parser: ConfigParser, source: string): ConfigError {
  if (error instanceof ConfigError) {
    const [problem] = error.problems;
    return configError(error.code, source, problem?.message ?? error.message, { path: problem?.path });
  }
  const { line, column } = Object(error) as { readonly line?: unknown; readonly column?: unknown };
  const where = { line: positive(line), column: positive(column) };
  const message = error instanceof ParseFailure ? error.message : `the ${parser.name} parser cannot read it`;
  return configError('ERR_CONFIG_PARSE', source, message, where);
}

function positive(value: unknown): number | undefined {
  return typeof value === 'number' && value > 0 ? value : undefined;
}
