import { configMapOf, isMap, keyProblem, type ConfigMap } from './config-value.js';
import { foldedKey } from './spelling.js';
import { configError } from './problems.js';
import { placesIn, type PlaceOf } from './places.js';

/** A key before it is split, its value, and its name in messages. */
export interface NamedEntry {
  readonly name: string;
  readonly key: string;
  readonly value: unknown;
}

/**
 * The entries as nested maps, and the names of those that set a path.
 * @param delimiter splits the keys; empty: keys are not split
 * @throws {ConfigError} `ERR_CONFIG_PARSE` when two entries set the same key, or one sets a key below the other, for a
 * forbidden key, and for a value that cannot be written as text.
 */
export function nestedValues(
  entries: readonly NamedEntry[],
  delimiter: string,
  source: string,
): { readonly values: ConfigMap; readonly placeOf: PlaceOf } {
  const values = {};
  const pathOf = ({ key }: NamedEntry): readonly string[] =>
    delimiter === '' ? [key] : key.split(delimiter);
  for (const entry of entries) {
    const { name, value } = entry;
    const path = pathOf(entry);
    const copy = configMapOf({ [name]: value }, source)[name];
    const problem = keyProblem(path) ?? put(values, path, copy);
    if (problem !== undefined) {
      throw configError('ERR_CONFIG_PARSE', source, `${name}: ${problem}`, { path });
    }
  }
  const placeOf: PlaceOf = async (path) => {
    // A lower layer may spell the keys differently.
    const sets = (keys: readonly string[]): boolean =>
      keys.every((key, depth) => foldedKey(key) === foldedKey(path[depth] ?? ''));
    const entry = entries.find((each) => sets(pathOf(each)));
    if (!entry) return undefined;
    return { name: entry.name, ...(await placesIn(entry.value)?.(path.slice(pathOf(entry).length))) };
  };
  return { values, placeOf };
}

/** Sets a value, creating missing maps. Returns a description of the problem, if there is one. */
function put(map: Record<string, unknown>, path: readonly string[], value: unknown): string | undefined {
  const problem = 'another one sets this key, or a key above or below it';
  let target = map;
  for (const key of path.slice(0, -1)) {
    const below = Object.hasOwn(target, key) ? target[key] : (target[key] = {});
    if (!isMap(below)) return problem;
    target = below;
  }
  const last = path.at(-1) ?? '';
  if (Object.hasOwn(target, last)) return problem;
  target[last] = value;
  return undefined;
}
