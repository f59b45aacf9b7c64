/** How the names of variables and arguments are spelled as keys. */
import { isMap, type ConfigMap, type ConfigValue } from './config-value.js';
import type { SchemaKeys } from './json-schema.js';

/** The keys that are known at one path: those of lower layers, and those of the schema. */
interface KnownKeys {
  readonly values: ConfigValue | undefined;
  readonly schema: SchemaKeys;
}

/** Called with the path of a key that two names set. */
type Refuse = (path: readonly string[], message: string) => void;

/**
 * `map` with its keys spelled like known ones. Of several known keys, the one whose spelling is the same is meant, then the one
 * that differs only in case and dashes, then the one that also differs in underscores, unless that is ambiguous.
 */
export function spelledAs(
  map: ConfigMap,
  known: KnownKeys,
  refuse: Refuse,
  path: readonly string[] = [],
): ConfigMap {
  const spellingOf = spellingsAmong([...namesIn(known.values), ...known.schema.names]);
  const spelled = new Map<string, ConfigValue>();
  for (const [name, value] of Object.entries(map)) {
    const key = spellingOf(name);
    const below = { values: memberOf(known.values, key), schema: known.schema.at(key) };
    const given = isMap(value) ? spelledAs(value, below, refuse, [...path, key]) : value;
    const before = spelled.get(key);
    if (isMap(before) && isMap(given)) spelled.set(key, { ...before, ...given });
    else if (before === undefined) spelled.set(key, given);
    else refuse([...path, key], TWICE);
  }
  return Object.fromEntries(spelled);
}

const TWICE = 'it is set twice, by names that differ in case, dashes or underscores';

/** A key regardless of case, dashes and underscores. */
export function foldedKey(key: string): string {
  return key.toLowerCase().replaceAll(/[-_]/g, '');
}

const withoutDashes = (key: string): string => key.toLowerCase().replaceAll('-', '');

function spellingsAmong(names: readonly string[]): (name: string) => string {
  const exact = new Set(names);
  const byFold = [withoutDashes, foldedKey].map((fold) => {
    const spellings = new Map<string, string | undefined>();
    for (const name of exact) spellings.set(fold(name), spellings.has(fold(name)) ? undefined : name);
    return (name: string) => (spellings.has(fold(name)) ? { name: spellings.get(fold(name)) } : undefined);
  });
  return (name) => {
    if (exact.has(name)) return name;
    const [found] = byFold.map((find) => find(name)).filter((each) => each !== undefined);
    return found?.name ?? name;
  };
}

function namesIn(values: ConfigValue | undefined): readonly string[] {
  return isMap(values) || Array.isArray(values) ? Object.keys(values) : [];
}

function memberOf(values: ConfigValue | undefined, key: string): ConfigValue | undefined {
  return namesIn(values).includes(key) ? (values as ConfigMap)[key] : undefined;
}
