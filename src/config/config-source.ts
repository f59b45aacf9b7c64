/** The sources of a configuration, and how each kind is read. */
import { sha256 } from '../core/digest.js';
import { ConfigError } from './config-error.js';
import { describe, hasMethods, isPlainObject } from '../core/options.js';
import type { ConfigProvider } from './config-provider.js';
import { configMapOf, isMap, keyProblem, type ConfigMap } from './config-value.js';
import { environmentValues, type EnvironmentOptions } from './environment.js';
import { PASS_A_PARSER } from './parser-by-extension.js';
import { isParser, parseBytes, type ConfigParser } from './parser.js';
import { configError } from './problems.js';

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
  /** Parses the bytes of the provider. Default: the provider's `read()` returns values. */
  readonly parser?: ConfigParser | undefined;
}

/** A source of environment variables. Read when the configuration is loaded, and by `check()`. */
export interface EnvironmentSource extends CommonSource {
  readonly env: EnvironmentOptions;
}

/** A source of fixed values, such as defaults. Copied when the loader is constructed. */
export interface ValuesSource extends CommonSource {
  readonly values: Readonly<Record<string, unknown>>;
  /** The name of the source in problems. Default `values`. */
  readonly name?: string | undefined;
}

/** One layer of a configuration. */
export type ConfigSource = ProviderSource | EnvironmentSource | ValuesSource;

/** Reads a source of any kind. */
export interface SourceReader {
  readonly name: string;
  readonly provider: ConfigProvider | undefined;
  /** Whether its keys match those of lower layers regardless of case. */
  readonly ignoresCase: boolean;
  /**
   * Reads the source. Rejects when it cannot be read or parsed.
   * @param noteDigest called with the digest of the bytes, before they are parsed
   */
  readonly read: (noteDigest: (digest: string) => void) => Promise<ConfigMap>;
}

/** @throws {TypeError} when the argument is not a source. */
export function readerOf(source: unknown, index: number): SourceReader {
  const reader = isMap(source) ? readerOfKind(source) : undefined;
  if (!reader || !isMap(source)) {
    throw new TypeError(
      `ConfigLoader: sources[${index}] must be { provider, parser? }, { env: { prefix } } or { values }; ` +
        `got ${shapeOf(source)}; a file is { provider: new FileProvider(path) }`,
    );
  }
  const path = mountPath(source['at']);
  if (!path) {
    throw new TypeError(
      `ConfigLoader: sources[${index}].at must be a key such as "db" or "db.primary", or an array of keys`,
    );
  }
  if (path.length === 0) return reader;
  return { ...reader, read: async (noteDigest) => mounted(path, await reader.read(noteDigest)) };
}

/** The names of a map's keys, never its values. */
function shapeOf(source: unknown): string {
  return isPlainObject(source) ? `{ ${Object.keys(source).join(', ')} }` : describe(source);
}

function readerOfKind(source: Readonly<Record<string, unknown>>): SourceReader | undefined {
  if ('provider' in source) {
    return isProviderSource(source) ? providerReader(source) : undefined;
  }
  if (isMap(source['env'])) return environmentReader(source['env'] as unknown as EnvironmentOptions);
  return isMap(source['values']) ? valuesReader(source as unknown as ValuesSource) : undefined;
}

function isProviderSource(source: {
  readonly provider?: unknown;
  readonly parser?: unknown;
}): source is ProviderSource {
  const { provider, parser } = source;
  if (parser === undefined) return hasMethods(provider, ['read']);
  return hasMethods(provider, ['readBytes']) && isParser(parser);
}

function providerReader({ provider, parser }: ProviderSource): SourceReader {
  const { name } = provider;
  const read = async (noteDigest: (digest: string) => void): Promise<ConfigMap> => {
    if (!parser) return valuesOf(await provider.read(), name);
    const bytes = await provider.readBytes?.();
    if (!bytes) return {};
    noteDigest(`sha256:${sha256(bytes)}`);
    return parseBytes(bytes, parser, name);
  };
  return { name, provider, ignoresCase: false, read };
}

function environmentReader(options: EnvironmentOptions): SourceReader {
  const name = `environment ${options.prefix}*`;
  const read = (): Promise<ConfigMap> => new Promise((resolve) => resolve(environmentValues(options, name)));
  return { name, provider: undefined, ignoresCase: options.transform === undefined, read };
}

function valuesReader({ values, name = 'values' }: ValuesSource): SourceReader {
  const copy = new Promise<ConfigMap>((resolve) => resolve(valuesOf(values, name)));
  copy.catch(() => undefined);
  return { name, provider: undefined, ignoresCase: false, read: () => copy };
}

function valuesOf(value: unknown, source: string): ConfigMap {
  if (value === undefined) return {};
  if (value instanceof Uint8Array) {
    throw configError('ERR_CONFIG_PARSE', source, `its read() returned bytes; ${PASS_A_PARSER}`);
  }
  try {
    return configMapOf(value);
  } catch (error) {
    const [problem] = error instanceof ConfigError ? error.problems : [];
    throw configError('ERR_CONFIG_REFUSED', source, problem?.message ?? String(error), {
      path: problem?.path,
    });
  }
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
