import { configMapOf, keyProblem, setAt, type ConfigMap } from './config-value.js';
import { foldedKey } from './spelling.js';
import { configError } from './problems.js';
import { placesIn, type PlaceOf } from './places.js';

const TAKEN = 'another one sets this key, or a key above or below it';

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
): {
  readonly values: ConfigMap;
  readonly placeOf: PlaceOf;
  /** The name that sets the value with this path. */
  readonly nameOf: (path: readonly string[]) => string | undefined;
} {
  const values = {};
  const pathOf = ({ key }: NamedEntry): readonly string[] =>
    delimiter === '' ? [key] : key.split(delimiter);
  for (const entry of entries) {
    const { name, value } = entry;
    const path = pathOf(entry);
    const copy = configMapOf({ [name]: value }, source)[name];
    const problem = keyProblem(path) ?? (setAt(values, path, copy) ? undefined : TAKEN);
    if (problem !== undefined) {
      throw configError('ERR_CONFIG_PARSE', source, `${name}: ${problem}`, { path });
    }
  }
  /**
   * The entry that sets this path or one above it, and how many keys of the path it sets; lower layers may spell them
   * differently.
   */
  const entryOf = (path: readonly string[]): readonly [NamedEntry, length: number] | undefined => {
    for (const separator of ['\0', '']) {
      const heads = path.map((_, at) => foldedKey(path.slice(0, at + 1).join(separator)));
      for (const entry of entries) {
        const at = heads.indexOf(foldedKey(pathOf(entry).join(separator)));
        if (at >= 0) return [entry, at + 1];
      }
    }
    return undefined;
  };
  const placeOf: PlaceOf = async (path) => {
    const [entry, length] = entryOf(path) ?? [];
    return entry && { name: entry.name, ...(await placesIn(entry.value)?.(path.slice(length))) };
  };
  return { values, placeOf, nameOf: (path) => entryOf(path)?.[0].name };
}
