import { callback, flag, isPlainObject, matching, required, type Resolved } from '../core/options/options.js';
import { kindOf } from './config-value.js';
import type { Reading } from './merge.js';
import { nestedValues, type NamedEntry } from './nested-values.js';
import { configError } from './problems.js';
import type { ConfigWarning } from './places.js';

/** Selects variables, and the keys that they set. */
export interface VariableOptions {
  /** Only variables with this prefix, such as `APP_`, are used, without the prefix. Empty: all variables. */
  readonly prefix: string;
  /** Splits a name into the keys of nested maps. Default `__`: `APP_LOG__LEVEL` sets `log.level`. */
  readonly delimiter?: string | undefined;
  /**
   * Returns the key (before it is split at the delimiter) and the value of a variable, or undefined to ignore it.
   * Default: the name without the prefix in lower case, and the text. Such keys match the keys of lower layers and of the
   * schema regardless of case, dashes and underscores (`APP_MAX_CONN` sets `maxConn`), and the loader emits `warning` for
   * one that matches none; keys from your own function are unchanged.
   */
  readonly transform?:
    | ((name: string, value: string) => { readonly key: string; readonly value: unknown } | undefined)
    | undefined;
  /**
   * Whether a variable without text (`APP_PORT=`) sets its key to the empty text. Default false: it is ignored, as in
   * node-config, because a number that is made of an empty text is 0; the loader emits `warning`, unless the source is the
   * environment and `prefix` is empty.
   */
  readonly allowEmpty?: boolean | undefined;
}

/** Selects environment variables, and the keys that they set. */
export interface EnvironmentOptions extends VariableOptions {
  /** Default: `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /**
   * Variables that name a file whose text is the value: `APP_DB_PASSWORD_FILE=/run/secrets/db` sets what
   * `APP_DB_PASSWORD` would. `true`: all with the suffix `_FILE`; an array: these. The files are followed. A variable that
   * is set in both ways is refused. Default false, because a program may have a key such as `log.file`; images that read
   * such variables name each of them.
   */
  readonly files?: boolean | readonly string[] | undefined;
}

const isText = (value: unknown): boolean => typeof value === 'string';

/** The checks of `VariableOptions`, and the defaults. */
export const VARIABLE_OPTIONS = {
  prefix: required(matching<string | undefined>(undefined, 'a string', isText)),
  delimiter: matching('__', 'a string', isText),
  transform: callback<NonNullable<VariableOptions['transform']>>(toLowerCase),
  allowEmpty: flag(false),
};

/** The same of `EnvironmentOptions`. */
export const ENVIRONMENT_OPTIONS = {
  ...VARIABLE_OPTIONS,
  env: matching<EnvironmentOptions['env']>(
    undefined,
    'an object such as process.env',
    (value) => typeof value === 'object' && value !== null,
  ),
  files: matching<boolean | readonly string[]>(
    false,
    'a boolean, or an array of names of variables',
    (value) => typeof value === 'boolean' || (Array.isArray(value) && value.every(isText)),
  ),
};

/**
 * The variables as nested maps.
 * @param isWhole whether they are a whole environment, without a prefix
 * @throws {ConfigError} `ERR_CONFIG_PARSE` when two variables set the same key, when a variable sets a key below the
 * value of another variable, for a forbidden key, and when `transform` returns something else.
 */
export function environmentValues(
  { prefix, delimiter, transform, allowEmpty, env }: Omit<Resolved<typeof ENVIRONMENT_OPTIONS>, 'files'>,
  source: string,
  isWhole = false,
): ReturnType<typeof nestedValues> & Pick<Reading, 'warnings'> {
  const empty: string[] = [];
  const links: string[] = [];
  const entries = Object.entries(env ?? process.env).flatMap(([name, text]): NamedEntry[] => {
    if (text === undefined || !name.startsWith(prefix)) return [];
    if (text === '' && !allowEmpty) {
      empty.push(name);
      return [];
    }
    const entry: unknown = transform(name.slice(prefix.length), text);
    if (entry === undefined) return [];
    // Every pod has these, whatever it sets.
    if (isServiceLink(text) && !name.startsWith('KUBERNETES_')) links.push(name);
    if (!isEntry(entry)) {
      const message = `transform must return { key, value } or undefined, got ${kindOf(entry)}`;
      throw configError('ERR_CONFIG_PARSE', source, `${name}: ${message}`);
    }
    return [{ ...entry, name }];
  });
  const warnings: ConfigWarning[] = [];
  // Most of a whole environment is of others.
  if (empty.length > 0 && !isWhole) {
    const message = `${source}: ${namesOf(empty)}: empty variables are ignored; "allowEmpty" of the source keeps them`;
    warnings.push({ code: 'empty', message });
  }
  if (links.length > 0) {
    warnings.push({ code: 'serviceLink', message: `${source}: ${namesOf(links)}: ${SERVICE_LINK}` });
  }
  return { ...nestedValues(entries, delimiter, source), warnings };
}

/** What to do about a variable that Kubernetes sets for a Service. */
export const SERVICE_LINK =
  'Kubernetes sets such a value for a Service of that name; set enableServiceLinks: false in the spec of the pod';

/** Whether a text looks like what Kubernetes sets for a port of a Service: `tcp://10.0.0.9:80`. */
export function isServiceLink(text: unknown): boolean {
  return typeof text === 'string' && /^(?:tcp|udp|sctp):\/\/[\d.:a-f[\]]{1,50}:\d{1,5}$/i.test(text);
}

/** The first of many names. */
function namesOf(names: readonly string[]): string {
  const [shown, more] = [names.slice(0, 5).join(', '), names.length - 5];
  return more > 0 ? `${shown} and ${more} more` : shown;
}

function isEntry(value: unknown): value is Pick<NamedEntry, 'key' | 'value'> {
  return isPlainObject(value) && typeof value['key'] === 'string' && 'value' in value;
}

export function toLowerCase(name: string, value: string): { readonly key: string; readonly value: unknown } {
  return { key: name.toLowerCase(), value };
}
