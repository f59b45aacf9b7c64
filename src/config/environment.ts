/** The environment as values. */
import { ConfigError } from '../core/errors.js';
import { configMapOf, type ConfigMap } from './config-value.js';
import { configError } from './parser.js';
import { putValue } from './put-value.js';

/** Which variables of the environment are configuration, and where in it they belong. */
export interface EnvironmentOptions {
  /** Only variables that begin with it are taken, and it is cut off: `APP_`. Empty: all are taken. */
  readonly prefix: string;
  /** Where a name is split into the keys of nested maps. Default `__`: `APP_LOG__LEVEL` is `log.level`. */
  readonly delimiter?: string | undefined;
  /**
   * What becomes of a variable: its key, still to be split at the delimiter, and its value; undefined leaves it out.
   * Default: the key is the name without the prefix in lower case, the value the text.
   */
  readonly transform?:
    | ((name: string, value: string) => { readonly key: string; readonly value: unknown } | undefined)
    | undefined;
  /** Default: `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
}

/**
 * The variables as nested maps.
 * @throws {ConfigError} `ERR_CONFIG_REFUSED` when two variables have the same key, when one needs a map where
 * another has a value, and for a forbidden key.
 */
export function environmentValues(options: EnvironmentOptions, source: string): ConfigMap {
  const { prefix, delimiter = '__', env = process.env } = options;
  const { transform = inLowerCase } = options;
  const values: Record<string, unknown> = {};
  for (const [variable, text] of Object.entries(env)) {
    if (text === undefined || !variable.startsWith(prefix)) continue;
    const entry = transform(variable.slice(prefix.length), text);
    if (!entry) continue;
    const path = delimiter === '' ? [entry.key] : entry.key.split(delimiter);
    try {
      // Checked one by one, so that the variable can be named.
      const { value } = configMapOf({ value: entry.value });
      if (!putValue(values, path, value)) {
        throw new ConfigError('ERR_CONFIG_REFUSED', 'another variable has a value at the same place');
      }
      configMapOf(values);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      const message = `${variable}: ${error.message}`;
      throw configError('ERR_CONFIG_REFUSED', source, message, { path });
    }
  }
  return configMapOf(values);
}

function inLowerCase(name: string, value: string): { readonly key: string; readonly value: unknown } {
  return { key: name.toLowerCase(), value };
}
