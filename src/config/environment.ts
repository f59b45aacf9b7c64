import { ConfigError } from './config-error.js';
import { configMapOf, keyProblem, type ConfigMap } from './config-value.js';
import { configError } from './problems.js';
import { putValue } from './put-value.js';

/** Selects environment variables and the keys that they set. */
export interface EnvironmentOptions {
  /** Only variables with this prefix, such as `APP_`, are used, and the prefix is removed. Empty: all variables. */
  readonly prefix: string;
  /** Splits a name into the keys of nested maps. Default `__`: `APP_LOG__LEVEL` sets `log.level`. */
  readonly delimiter?: string | undefined;
  /**
   * Returns the key (before it is split at the delimiter) and the value of a variable, or undefined to ignore it.
   * Default: the name without the prefix in lower case, and the text. Such keys match the keys of lower layers
   * regardless of case (`APP_MAXCONN` sets `maxConn`); keys returned by a function of your own are used as they are.
   */
  readonly transform?:
    | ((name: string, value: string) => { readonly key: string; readonly value: unknown } | undefined)
    | undefined;
  /** Default: `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
}

/**
 * The variables as nested maps.
 * @throws {ConfigError} `ERR_CONFIG_REFUSED` when two variables set the same key, when a variable sets a key below the
 * value of another one, and for a forbidden key.
 */
export function environmentValues(options: EnvironmentOptions, source: string): ConfigMap {
  const { prefix, delimiter = '__', env = process.env, transform = toLowerCase } = options;
  const values = {};
  for (const [variable, text] of Object.entries(env)) {
    if (text === undefined || !variable.startsWith(prefix)) continue;
    const entry = transform(variable.slice(prefix.length), text);
    if (!entry) continue;
    const path = delimiter === '' ? [entry.key] : entry.key.split(delimiter);
    const problem = keyProblem(path) ?? put(values, path, entry.value);
    if (problem !== undefined) {
      throw configError('ERR_CONFIG_REFUSED', source, `${variable}: ${problem}`, { path });
    }
  }
  return values;
}

/** Sets a value. Returns a description of the problem, if there is one. */
function put(values: Record<string, unknown>, path: readonly string[], value: unknown): string | undefined {
  try {
    const copy = configMapOf({ value })['value'];
    return putValue(values, path, copy)
      ? undefined
      : 'another variable sets this key, or one above or below it';
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
}

function toLowerCase(name: string, value: string): { readonly key: string; readonly value: unknown } {
  return { key: name.toLowerCase(), value };
}
