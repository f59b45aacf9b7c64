/** What a configuration is made of, and how each kind of source is read. */
import { hash } from 'node:crypto';

import { ConfigError } from '../core/errors.js';
import { hasMethods } from '../core/options.js';
import type { ConfigProvider } from './config-provider.js';
import { configMapOf, isMap, type ConfigMap } from './config-value.js';
import { environmentValues, type EnvironmentOptions } from './environment.js';
import { configError, isParser, parseBytes, type ConfigParser } from './parser.js';

/** A provider, and the parser for its bytes if it does not read them itself. */
export interface ProviderSource {
  readonly provider: ConfigProvider;
  readonly parser?: ConfigParser | undefined;
}

/** The environment; read when the configuration is loaded. */
export interface EnvironmentSource {
  readonly env: EnvironmentOptions;
}

/** Values that are given, as defaults are; copied when the loader is made. */
export interface ValuesSource {
  readonly values: Readonly<Record<string, unknown>>;
  /** Shown in problems. Default `values`. */
  readonly name?: string | undefined;
}

/** One layer of a configuration. */
export type ConfigSource = ProviderSource | EnvironmentSource | ValuesSource;

/** What a source gave. */
export interface SourceReading {
  /** `sha256:…` of the bytes, where there are bytes. */
  readonly digest: string | undefined;
  readonly result: { readonly values: ConfigMap } | { readonly error: unknown };
}

/** A source, ready to be read. */
export interface OpenSource {
  readonly name: string;
  readonly provider: ConfigProvider | undefined;
  /** What it gives now. */
  read(): Promise<SourceReading>;
}

/** @throws {TypeError} when it is no source. */
export function openSource(source: unknown, index: number): OpenSource {
  if (isMap(source)) {
    if ('provider' in source && isProvider(source)) return openProvider(source);
    if (isMap(source['env'])) return openEnvironment(source['env'] as unknown as EnvironmentOptions);
    if (isMap(source['values'])) return openValues(source as unknown as ValuesSource);
  }
  throw new TypeError(
    `ConfigLoader: sources[${index}] must be { provider, parser? }, { env: { prefix } } or { values: { … } }`,
  );
}

function isProvider(source: {
  readonly provider?: unknown;
  readonly parser?: unknown;
}): source is ProviderSource {
  const { provider, parser } = source;
  if (parser === undefined) return hasMethods(provider, ['read']);
  return hasMethods(provider, ['readBytes']) && isParser(parser);
}

function openProvider({ provider, parser }: ProviderSource): OpenSource {
  const { name } = provider;
  return {
    name,
    provider,
    async read() {
      let bytes: Uint8Array | undefined;
      const digest = (): string | undefined =>
        bytes ? `sha256:${hash('sha256', bytes, 'hex')}` : provider.digest;
      try {
        let values: ConfigMap;
        if (parser) {
          bytes = await provider.readBytes?.();
          values = bytes ? await parseBytes(bytes, parser, name) : {};
        } else values = valuesOf(await provider.read(), name);
        return { digest: digest(), result: { values } };
      } catch (error) {
        return { digest: digest(), result: { error } };
      }
    },
  };
}

function valuesOf(value: unknown, source: string): ConfigMap {
  if (value === undefined) return {};
  try {
    return configMapOf(value);
  } catch (error) {
    const [problem] = error instanceof ConfigError ? error.problems : [];
    throw configError('ERR_CONFIG_REFUSED', source, problem?.message ?? String(error), {
      path: problem?.path,
    });
  }
}

function openEnvironment(options: EnvironmentOptions): OpenSource {
  const name = `environment ${options.prefix}*`;
  return {
    name,
    provider: undefined,
    read: () =>
      Promise.resolve({ digest: undefined, result: attempt(() => environmentValues(options, name)) }),
  };
}

function openValues({ values, name = 'values' }: ValuesSource): OpenSource {
  const result = attempt(() => valuesOf(values, name));
  return { name, provider: undefined, read: () => Promise.resolve({ digest: undefined, result }) };
}

function attempt(values: () => ConfigMap): SourceReading['result'] {
  try {
    return { values: values() };
  } catch (error) {
    return { error };
  }
}
