/** How the names of variables and arguments are spelled as keys. */
import { isMap, setAt, type ConfigMap, type ConfigValue } from './config-value.js';
import { schemaKeys, type SchemaKeys } from './json-schema.js';

/** What is known at one path: of other layers, and of the schema. */
export interface Known {
  readonly values: readonly ConfigValue[];
  readonly schema: SchemaKeys;
}

/** More paths, and deeper ones, than in any configuration that people write. */
const MAX_PATHS = 2_000;
const MAX_KEYS = 10;

const TWICE = 'it is set twice, by names that differ in case, dashes or underscores';

/**
 * `map` with its keys spelled like known ones. A name means, in this order, the key that is spelled
 *
 * |                                                          | as in                            |
 * |----------------------------------------------------------|----------------------------------|
 * | the same                                                 | `log_level` for `log_level`      |
 * | the same but for case and dashes                         | `loglevel` for `logLevel`        |
 * | the same but for case, dashes and underscores            | `log_level` for `log-level`      |
 * | so, with the keys of nested maps one after another       | `log_level` for `level` in `log` |
 *
 * Several that are alike are as good as none.
 * @param refuse is called with the path of a key that two names set
 */
export function spelledAs(
  map: ConfigMap,
  { values, schema }: { readonly values: ConfigMap; readonly schema: unknown },
  refuse: (path: readonly string[], message: string) => void,
): ConfigMap {
  const spelled: Record<string, unknown> = {};
  for (const [path, value] of spelledLeaves(map, { values: [values], schema: schemaKeys(schema) })) {
    if (!setAt(spelled, path, value)) refuse(path, TWICE);
  }
  return spelled as ConfigMap;
}

function* spelledLeaves(
  map: ConfigMap,
  known: Known,
  path: readonly string[] = [],
): Generator<readonly [path: readonly string[], value: ConfigValue]> {
  const keysFor = spellingsAmong(known);
  for (const [name, value] of Object.entries(map)) {
    const keys = keysFor(name);
    if (isMap(value)) yield* spelledLeaves(value, keys.reduce(knownBelow, known), [...path, ...keys]);
    else yield [[...path, ...keys], value];
  }
}

/** Finds the keys that a name means. */
function spellingsAmong(known: Known): (name: string) => readonly string[] {
  const exact = new Set(namesIn(known));
  const names = [...exact].map((name) => [name]);
  const finders = [withoutDashes, foldedKey].map((fold) => uniqueBy(fold, () => names));
  finders.push(uniqueBy(foldedKey, () => knownPaths(known)));
  return (name) => {
    if (exact.has(name)) return [name];
    for (const find of finders) {
      const found = find(name);
      if (found) return found;
    }
    return [name];
  };
}

/** Finds the only path that is the same as a name once both are folded. */
function uniqueBy(
  fold: (key: string) => string,
  paths: () => Iterable<readonly string[]>,
): (name: string) => readonly string[] | undefined {
  let found: Map<string, readonly string[] | undefined> | undefined;
  return (name) => {
    if (!found) {
      found = new Map();
      for (const path of paths()) {
        const folded = fold(path.join(''));
        found.set(folded, found.has(folded) ? undefined : path);
      }
    }
    return found.get(fold(name));
  };
}

/** A key regardless of case, dashes and underscores. */
export function foldedKey(key: string): string {
  return key.toLowerCase().replaceAll(/[-_]/g, '');
}

function withoutDashes(key: string): string {
  return key.toLowerCase().replaceAll('-', '');
}

/** The first of many paths at which something is known, those of maps included. */
export function* knownPaths(known: Known): Generator<readonly string[]> {
  let left = MAX_PATHS;
  const pathsBelow = function* (at: Known, path: readonly string[]): Generator<readonly string[]> {
    if (path.length === MAX_KEYS) return;
    // An index of a list is no name.
    const maps = { ...at, values: at.values.filter((value) => isMap(value)) };
    for (const name of new Set(namesIn(maps))) {
      if (left === 0) return;
      left -= 1;
      yield [...path, name];
      yield* pathsBelow(knownBelow(maps, name), [...path, name]);
    }
  };
  yield* pathsBelow(known, []);
}

/** What is known below a key. */
export function knownBelow({ values, schema }: Known, key: string): Known {
  const members = values.filter((value) => Object.hasOwn(Object(value) as object, key));
  return { values: members.map((value) => (value as ConfigMap)[key] as ConfigValue), schema: schema.at(key) };
}

function namesIn({ values, schema }: Known): readonly string[] {
  const containers = values.filter((value) => isMap(value) || Array.isArray(value));
  return [...containers.flatMap((value) => Object.keys(value as object)), ...schema.names];
}
