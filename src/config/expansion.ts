/** Variables in the texts of a configuration: `${NAME}`. */
import { matching } from '../core/options/options.js';
import { isMap, type ConfigMap, type ConfigValue } from './config-value.js';
import { placesIn, withPlaces } from './places.js';
import { configError } from './problems.js';

/** Variables by name. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** The option of providers. */
export const EXPAND = matching<boolean | Variables>(
  false,
  'true, or an object of variables such as process.env',
  (value) => typeof value === 'boolean' || isMap(value) || value === process.env,
);

/** `$${`, or a reference up to its brace; without one, to the end of the text. */
const REFERENCE = /\$\$\{|\$\{([^}]*)(\}?)/g;

const NAME_AND_DEFAULT = /^([A-Za-z_]\w*)(?::-([^]*))?$/;

/**
 * The values with each `${NAME}` in a text replaced by that variable, and `${NAME:-text}` by `text` if the variable is
 * unset or empty; `$${` stands for `${`. What is put in is not read again, and keys stay as they are. Problems name the
 * variable, and never its value.
 * @param limit characters that variables may add in all: short texts can refer to a long one many times
 * @throws {ConfigError} (rejects) `ERR_CONFIG_PARSE` with line and column for an unknown variable and for what is no
 * reference, `ERR_CONFIG_TOO_LARGE` above the limit.
 */
export async function expanded(
  values: ConfigMap,
  variables: Variables,
  { source, limit }: { readonly source: string; readonly limit: number },
): Promise<ConfigMap> {
  let left = limit;
  let fault: { readonly path: readonly string[]; readonly message: string } | undefined;
  const textOf = (text: string, path: readonly string[]): string =>
    text.replaceAll(REFERENCE, (reference, inner: string | undefined, brace) => {
      if (inner === undefined) return '${';
      const [, name = '', standard] = NAME_AND_DEFAULT.exec(inner) ?? [];
      const set = Object.hasOwn(variables, name) ? variables[name] : undefined;
      const isEmpty = set === undefined || set === '';
      const value = isEmpty ? (standard ?? set) : set;
      if (name === '' || brace === '') fault ??= { path, message: NO_REFERENCE };
      else if (value === undefined) fault ??= { path, message: unknownVariable(name) };
      left -= value?.length ?? 0;
      return left < 0 ? reference : (value ?? reference);
    });
  const valueOf = (value: ConfigValue, path: readonly string[]): ConfigValue => {
    if (typeof value === 'string') return value.includes('${') ? textOf(value, path) : value;
    if (isMap(value)) return mapOf(value, path);
    return Array.isArray(value)
      ? value.map((each: ConfigValue, at) => valueOf(each, [...path, `${at}`]))
      : value;
  };
  const mapOf = (map: ConfigMap, path: readonly string[]): ConfigMap =>
    Object.fromEntries(Object.entries(map).map(([key, value]) => [key, valueOf(value, [...path, key])]));

  const placeOf = placesIn(values);
  const copy = mapOf(values, []);
  if (fault) {
    const { path, message } = fault;
    throw configError('ERR_CONFIG_PARSE', source, message, { path, ...(await placeOf?.(path)) });
  }
  if (left < 0) {
    throw configError(
      'ERR_CONFIG_TOO_LARGE',
      source,
      `its variables add more than maxBytes, ${limit} characters`,
    );
  }
  return placeOf ? withPlaces(copy, placeOf) : copy;
}

const NO_REFERENCE =
  '"${" begins a variable, as in ${NAME} or ${NAME:-default}; write $${ for a literal "${"';

function unknownVariable(name: string): string {
  return `there is no variable ${name}; \${${name}:-default} gives it a default, and $\${ stands for a literal "\${"`;
}
