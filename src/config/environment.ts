import { callback, isPlainObject, matching, optional, required } from '../core/options.js';
import { kindOf, type ConfigMap } from './config-value.js';
import { nestedValues, type NamedEntry } from './nested-values.js';
import { configError } from './problems.js';

/** Selects variables, and the keys that they set. */
export interface VariableOptions {
  /** Only variables with this prefix, such as `APP_`, are used, without the prefix. Empty: all variables. */
  readonly prefix: string;
  /** Splits a name into the keys of nested maps. Default `__`: `APP_LOG__LEVEL` sets `log.level`. */
  readonly delimiter?: string | undefined;
  /**
   * Returns the key (before it is split at the delimiter) and the value of a variable, or undefined to ignore it.
   * Default: the name without the prefix in lower case, and the text. Such keys match the keys of lower layers
   * regardless of case and dashes (`APP_MAXCONN` sets `max-conn`); keys from your own function are unchanged.
   */
  readonly transform?:
    | ((name: string, value: string) => { readonly key: string; readonly value: unknown } | undefined)
    | undefined;
}

/** Selects environment variables, and the keys that they set. */
export interface EnvironmentOptions extends VariableOptions {
  /** Default: `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
}

const text = matching<string | undefined>(undefined, 'a string', (value) => typeof value === 'string');

/** Checks of `VariableOptions`. */
export const VARIABLE_OPTIONS = {
  prefix: required(text),
  delimiter: text,
  transform: optional(callback(toLowerCase)),
};

/** Checks of `EnvironmentOptions`. */
export const ENVIRONMENT_OPTIONS = {
  ...VARIABLE_OPTIONS,
  env: matching<EnvironmentOptions['env']>(
    undefined,
    'an object such as process.env',
    (value) => typeof value === 'object' && value !== null,
  ),
};

/**
 * The variables as nested maps.
 * @throws {ConfigError} `ERR_CONFIG_PARSE` when two variables set the same key, when a variable sets a key below the
 * value of another variable, for a forbidden key, and when `transform` returns something else.
 */
export function environmentValues(options: EnvironmentOptions, source: string): ConfigMap {
  const { prefix, delimiter = '__', env = process.env, transform = toLowerCase } = options;
  const entries = Object.entries(env).flatMap(([name, text]): NamedEntry[] => {
    if (text === undefined || !name.startsWith(prefix)) return [];
    const entry: unknown = transform(name.slice(prefix.length), text);
    if (entry === undefined) return [];
    if (!isEntry(entry)) {
      const message = `transform must return { key, value } or undefined, got ${kindOf(entry)}`;
      throw configError('ERR_CONFIG_PARSE', source, `${name}: ${message}`);
    }
    return [{ ...entry, name }];
  });
  return nestedValues(entries, delimiter, source);
}

function isEntry(value: unknown): value is Pick<NamedEntry, 'key' | 'value'> {
  return isPlainObject(value) && typeof value['key'] === 'string' && 'value' in value;
}

function toLowerCase(name: string, value: string): { readonly key: string; readonly value: unknown } {
  return { key: name.toLowerCase(), value };
}
