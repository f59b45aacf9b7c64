/** The sources of a configuration, and how each kind is read. */
import {
  describe,
  hasMethods,
  isNonEmptyString,
  isPlainObject,
  matching,
  resolveOptions,
  type Resolved,
} from '../core/options/options.js';
import { markHandled } from '../core/scheduling/outcome.js';
import { argumentOptions, argumentValues, type ArgumentOptions } from './arguments.js';
import type { ConfigProvider } from './config-provider.js';
import { configMapOf, isMap, keyProblem, type ConfigMap } from './config-value.js';
import {
  ENVIRONMENT_OPTIONS,
  environmentValues,
  toLowerCase,
  VARIABLE_OPTIONS,
  type EnvironmentOptions,
  type VariableOptions,
} from './environment.js';
import type { Naming, Reading } from './merge.js';
import { configError } from './problems.js';
import { placesIn, type PlaceOf } from './places.js';
import { VariableFiles } from './variable-files.js';

/** Options of every source. */
interface CommonSource {
  /**
   * The key under which the values are mounted: `db`, `db.primary`, or an array of keys if a key contains a dot.
   * Default: the top level.
   */
  readonly at?: string | readonly string[] | undefined;
}

/** A source that a provider reads. */
export interface ProviderSource extends CommonSource {
  readonly provider: ConfigProvider;
  /**
   * Treats the values, which must all be text, as variables: variables of a `.env` file then set keys by the same
   * rules as environment variables. Default: their names are the keys.
   */
  readonly env?: VariableOptions | undefined;
}

/** A source of environment variables. Read when the configuration is loaded, and by `check()`. */
export interface EnvironmentSource extends CommonSource {
  readonly env: EnvironmentOptions;
}

/** A source of command-line arguments. Read when the configuration is loaded, and by `check()`. */
export interface ArgumentSource extends CommonSource {
  readonly args: ArgumentOptions;
}

/** A source of fixed values, such as defaults. Copied when the loader is constructed. */
export interface ValuesSource extends CommonSource {
  readonly values: Readonly<Record<string, unknown>>;
  /** The name of the source in problems. Default `values`. */
  readonly name?: string | undefined;
}

/** One layer of a configuration. */
export type ConfigSource = ProviderSource | EnvironmentSource | ArgumentSource | ValuesSource;

/** Reads a source of any kind. */
export interface SourceReader extends Naming {
  readonly name: string;
  readonly provider?: ConfigProvider;
  /** Reads the source. Throws or rejects when it cannot be read or parsed. */
  readonly read: () => SourceReading | Promise<SourceReading>;
}

/** What reading a source yields. */
interface SourceReading extends Reading {
  /** What it consists of, the lowest layer first. */
  readonly parts?: readonly SourceReader[] | undefined;
}

/** @throws {TypeError} when the argument is not a source. */
export function readerOf(source: unknown, index: number): SourceReader {
  return readerAt(`ConfigLoader: sources[${index}]`, source);
}

/** @param where in messages */
function readerAt(where: string, source: unknown): SourceReader {
  const reader = isMap(source) ? readerOfKind(source, where) : undefined;
  if (!reader || !isMap(source)) {
    throw new TypeError(
      `${where} must be { provider, env? }, { env: { prefix } }, { args: {} } or { values }; ` +
        `got ${shapeOf(source)}; a file is { provider: new FileProvider(path) }`,
    );
  }
  const path = mountPath(source['at']);
  if (!path) {
    throw new TypeError(`${where}.at must be a key such as "db" or "db.primary", or an array of keys`);
  }
  if (path.length === 0 || hasMethods(reader.provider, ['parts'])) return reader;
  const read = async (): Promise<Reading> => {
    const { values, placeOf, fileOf, warnings } = await reader.read();
    return {
      values: mounted(path, values),
      placeOf: (below) => placeOf?.(below.slice(path.length)),
      fileOf: (below) => fileOf?.(below.slice(path.length)),
      warnings,
    };
  };
  return { ...reader, read };
}

/** Keys are what they are, and values that are maps stay maps. */
const AS_WRITTEN: Naming = { ignoresCase: false, namesKeys: false, setsPaths: false };

/** The names of a map's keys, never its values. */
function shapeOf(source: unknown): string {
  return isPlainObject(source) ? `{ ${Object.keys(source).join(', ')} }` : describe(source);
}

function readerOfKind(source: Readonly<Record<string, unknown>>, where: string): SourceReader | undefined {
  const { provider, env, args, values } = source;
  if (provider !== undefined) {
    if (!hasMethods(provider, ['read']) || !isNonEmptyString((provider as { name?: unknown }).name)) {
      throw new TypeError(`${where}.provider must have a name and read(), as new FileProvider(path) has`);
    }
    checkKeys(where, source, ['provider', 'env', 'at']);
    const variables = env === undefined ? undefined : resolveOptions(`${where}.env`, env, VARIABLE_OPTIONS);
    const whole = provider as unknown as ConfigProvider;
    const reader = providerReader(whole, variables);
    if (!whole.parts) return reader;
    const read = async (): Promise<SourceReading> => {
      const parts = await whole.parts?.();
      const { warnings } = whole;
      return {
        values: {},
        warnings,
        parts: parts?.map((part) => readerAt(where, { ...source, provider: part })),
      };
    };
    return { ...reader, read };
  }
  if (isMap(env)) {
    checkKeys(where, source, ['env', 'at']);
    const options = resolveOptions(`${where}.env`, env, ENVIRONMENT_OPTIONS);
    const name = `environment ${options.prefix}*`;
    const ignoresCase = options.transform === toLowerCase;
    const isWhole = options.prefix === '';
    const reader = { name, ignoresCase, namesKeys: ignoresCase && !isWhole, setsPaths: true };
    if (options.files === false) return { ...reader, read: () => environmentValues(options, name, isWhole) };
    const provider = new VariableFiles(name, options, isWhole);
    return { ...reader, provider, read: () => provider.read() };
  }
  if (isMap(args)) {
    checkKeys(where, source, ['args', 'at']);
    const options = argumentOptions(`${where}.args`, args);
    const name = 'arguments';
    const read = (): Reading => argumentValues(options, name);
    return { name, ignoresCase: true, namesKeys: false, setsPaths: true, read };
  }
  if (!isMap(values)) return undefined;
  checkKeys(where, source, ['values', 'name', 'at']);
  return valuesReader(source as unknown as ValuesSource);
}

/** @throws {TypeError} for a key that this kind of source does not have. */
function checkKeys(where: string, source: object, keys: readonly string[]): void {
  const anything = matching<unknown>(undefined, 'anything', () => true);
  resolveOptions(where, source, Object.fromEntries(keys.map((key) => [key, anything])), 'key');
}

function providerReader(
  provider: ConfigProvider,
  variables: Resolved<typeof VARIABLE_OPTIONS> | undefined,
): SourceReader {
  const { name } = provider;
  const readAll = async (): Promise<Reading> => {
    const given = await provider.read();
    if (given instanceof Uint8Array) {
      throw configError('ERR_CONFIG_PARSE', name, 'its read() returned bytes instead of values');
    }
    const values = given === undefined ? {} : configMapOf(given, name);
    return { values, placeOf: placesIn(given), warnings: provider.warnings };
  };
  if (!variables) {
    // A `VolumeProvider`, of this copy of the library or of another one.
    const setsPaths = hasMethods(provider, ['readFiles']);
    return { ...AS_WRITTEN, name, provider, setsPaths, read: readAll };
  }
  const read = async (): Promise<Reading> => {
    const file = await readAll();
    const set = environmentValues({ ...variables, env: textsOf(file.values, name) }, name);
    const placeOf: PlaceOf = async (path) => {
      const place = await set.placeOf(path);
      return place?.name === undefined ? undefined : { ...place, ...(await file.placeOf?.([place.name])) };
    };
    return { values: set.values, placeOf, warnings: [...(file.warnings ?? []), ...(set.warnings ?? [])] };
  };
  const ignoresCase = variables.transform === toLowerCase;
  return { name, provider, ignoresCase, namesKeys: ignoresCase, setsPaths: true, read };
}

/** @throws {ConfigError} `ERR_CONFIG_PARSE` for a value that is not text. */
function textsOf(values: ConfigMap, source: string): Readonly<Record<string, string>> {
  for (const [key, value] of Object.entries(values)) {
    if (typeof value === 'string') continue;
    throw configError('ERR_CONFIG_PARSE', source, 'a variable must be text', { path: [key] });
  }
  return values as Readonly<Record<string, string>>;
}

function valuesReader({ values, name = 'values' }: ValuesSource): SourceReader {
  const read = async (): Promise<Reading> => ({ values: await copy });
  const copy = markHandled(new Promise<ConfigMap>((resolve) => resolve(configMapOf(values, name))));
  return { ...AS_WRITTEN, name, read };
}

/** The keys of the option `at`; undefined when it is wrong. */
function mountPath(at: unknown): readonly string[] | undefined {
  if (at === undefined) return [];
  const path: unknown = typeof at === 'string' ? at.split('.') : at;
  if (!Array.isArray(path) || !path.every((key) => typeof key === 'string' && key !== '')) return undefined;
  return keyProblem(path as string[]) === undefined ? (path as string[]) : undefined;
}

function mounted(path: readonly string[], values: ConfigMap): ConfigMap {
  return path.reduceRight<ConfigMap>((below, key) => ({ [key]: below }), values);
}
