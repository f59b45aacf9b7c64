/** Parses bytes into values. */
import { PackageError } from '../core/errors/package-error.js';
import { utf16In } from '../fs/read-file.js';
import { ConfigError } from './config-error.js';
import { hasMethods, matching } from '../core/options/options.js';
import { configMapOf, isMap, type ConfigMap } from './config-value.js';
import { configError, placeText, sourceProblems } from './problems.js';
import { withPlaces, type ConfigWarning, type Place } from './places.js';

/** How a text is parsed. */
export interface ParseOptions {
  /** Whether the merge keys of YAML (`<<: *base`) are merged. Default false: `yamlParser` refuses them. */
  readonly merge?: boolean | undefined;
  /** Receives what is not wrong, but may not be what the author meant. */
  readonly warn?: ((warning: ConfigWarning & Place) => void) | undefined;
}

/** A parser for one format. Encoding, size and forbidden keys are checked for all formats elsewhere. */
export interface ConfigParser {
  /** The name of the format in problems, such as `JSON`. */
  readonly name: string;
  /**
   * Returns the values, which must be a map, or a promise of them. If it throws, the numeric `line` and `column` of the
   * error are reported, but not the message, which may quote a secret.
   */
  parse(text: string, options?: ParseOptions): unknown;
  /** The place of the value with this path in a text that was parsed; undefined if it is unknown. For messages only. */
  placeOf?(text: string, path: readonly string[]): Place | undefined | Promise<Place | undefined>;
}

export function isParser(value: unknown): value is ConfigParser {
  return hasMethods(value, ['parse']) && typeof (value as { readonly name?: unknown }).name === 'string';
}

/** The option of parsers by extension. */
export const PARSERS_OPTION = matching<Readonly<Record<string, ConfigParser>>>(
  {},
  'an object of parsers by extension, such as { yaml: yamlParser }',
  (value) => isMap(value) && Object.values(value).every(isParser),
);

/** The parsers by their extensions with the dot, in lower case. */
export function parsersByExtension(
  parsers: Readonly<Record<string, ConfigParser>>,
): ReadonlyMap<string, ConfigParser> {
  const withDot = (extension: string): string => `.${extension.replace(/^\./, '').toLowerCase()}`;
  return new Map(Object.entries(parsers).map(([extension, parser]) => [withDot(extension), parser]));
}

/**
 * Parses bytes: UTF-8, with or without a byte order mark.
 * @param source the name of the source in problems and warnings.
 * @throws {ConfigError} (rejects) `ERR_CONFIG_PARSE`.
 * @throws {PackageError} (rejects) when the parser needs a package that is not installed.
 */
export async function parseBytes(
  bytes: Uint8Array,
  parser: ConfigParser,
  source: string,
  { merge, warnings }: { readonly merge: boolean; readonly warnings: ConfigWarning[] },
): Promise<ConfigMap> {
  const warn = ({ code, message, ...place }: ConfigWarning & Place): void =>
    void warnings.push({ code, message: `${placeText(source, place)}${message}` });
  const text = textOf(bytes, source);
  let values: unknown;
  try {
    values = await parser.parse(text, { merge, warn });
  } catch (error) {
    throw error instanceof PackageError ? error : parseError(error, parser, source);
  }
  return withPlaces(configMapOf(values, source), (path) => parser.placeOf?.(text, path));
}

/**
 * Decodes UTF-8, without a byte order mark.
 * @throws {ConfigError} `ERR_CONFIG_PARSE` when it is not UTF-8.
 */
export function textOf(bytes: Uint8Array, source: string): string {
  const utf16 = utf16In(bytes);
  if (utf16 !== undefined) throw configError('ERR_CONFIG_PARSE', source, `the text ${utf16}`);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw configError('ERR_CONFIG_PARSE', source, 'the text is not valid UTF-8');
  }
}

/** If the parser crashed, `cause` says where. */
function parseError(error: unknown, parser: ConfigParser, source: string): ConfigError {
  if (error instanceof ConfigError) {
    const problems = sourceProblems(error, source);
    return new ConfigError('ERR_CONFIG_PARSE', problems[0]?.message ?? error.message, { problems });
  }
  const { line, column } = Object(error) as { readonly line?: unknown; readonly column?: unknown };
  const where = { line: positive(line), column: positive(column) };
  const cause = withoutMessage(error);
  return configError('ERR_CONFIG_PARSE', source, `the ${parser.name} parser failed`, { ...where, cause });
}

/** A copy of an error from other code, without its message, which may quote the text. */
function withoutMessage(error: unknown): Error | undefined {
  if (!(error instanceof Error)) return undefined;
  const { name, message, stack = '' } = error;
  const copy = new Error('the message is left out, because it may quote the text');
  const frames = stack.includes(message) ? stack.slice(stack.indexOf(message) + message.length) : '';
  return Object.assign(copy, { name, stack: `${name}: ${copy.message}${frames}` });
}

function positive(value: unknown): number | undefined {
  return typeof value === 'number' && value > 0 ? value : undefined;
}
