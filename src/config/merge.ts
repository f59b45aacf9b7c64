import type { ConfigProblem } from './config-error.js';
import { isMap, valueAt, type ConfigMap, type ConfigValue } from './config-value.js';
import { listed, problemAt } from './problems.js';
import { spelledAs } from './spelling.js';
import type { ConfigWarning, PlaceOf } from './places.js';

/** What reading a source yields. */
export interface Reading {
  readonly values: ConfigMap;
  /** Undefined: no place is known. */
  readonly placeOf?: PlaceOf | undefined;
  /** The file that the value with this path comes from; undefined if it is the source as a whole. */
  readonly fileOf?: ((path: readonly string[]) => string | undefined) | undefined;
  readonly warnings?: readonly ConfigWarning[] | undefined;
}

/** What the names of a source mean. */
export interface Naming {
  /** Whether its keys match those of lower layers and of the schema regardless of case, dashes and underscores. */
  readonly ignoresCase: boolean;
  /** Whether a name of it that sets no known key is worth a warning: others share the whole environment. */
  readonly namesKeys: boolean;
  /** Whether a map of it with the indexes of a list sets elements of that list; no other map takes the place of a list. */
  readonly setsPaths: boolean;
}

/** The values of one source, ready to be merged. */
export interface Layer extends Omit<Reading, 'warnings'>, Naming {
  /** The name of the source. */
  readonly source: string;
}

/** Called with the path of a value that cannot be merged. */
type Refuse = (path: readonly string[], message: string) => void;

/**
 * Merges layers from the lowest to the highest without changing them. Two maps are merged
 * recursively; anything else, arrays and null included, is replaced (the rule of koanf's `maps.Merge`). A layer that sets
 * paths (`HOSTS__0`) sets the elements of a list.
 * @param schema the JSON Schema of the validator, whose keys are known, too; undefined if it has none
 */
export function mergeLayers(
  layers: readonly Layer[],
  schema: unknown,
): {
  readonly values: ConfigMap;
  /** The layers as they were merged; if case is ignored, with the spelling of lower layers and of the schema. */
  readonly layers: readonly Layer[];
  /** Paths beyond the end of a list, or that are no index of it, or that two names of a layer set. */
  readonly problems: readonly ConfigProblem[];
} {
  let values: ConfigMap = {};
  const problems: ConfigProblem[] = [];
  const merged: Layer[] = [];
  for (const layer of layers) {
    const refuse: Refuse = (path, message) =>
      void problems.push(problemAt('ERR_CONFIG_PARSE', layer.source, message, { path }));
    const own = layer.ignoresCase ? spelledAs(layer.values, { values, schema }, refuse) : layer.values;
    values = mergedMap(values, own, [], layer.setsPaths ? refuse : undefined);
    merged.push({ ...layer, values: own });
  }
  return { values, layers: merged, problems: listed(problems) };
}

/** The layer from which the value with this path comes; undefined if there is no such value. */
export function originOf(layers: readonly Layer[], path: readonly string[]): Layer | undefined {
  return layers.findLast(({ values }) => valueAt(values, path) !== undefined);
}

/** Two maps, merged. @param refuse if it is given, maps set elements of lists */
export function mergedMap(
  lower: ConfigMap,
  upper: ConfigMap,
  path: readonly string[] = [],
  refuse?: Refuse,
): ConfigMap {
  const merged: Record<string, ConfigValue> = { ...lower };
  for (const [key, value] of Object.entries(upper)) {
    const below = Object.hasOwn(lower, key) ? lower[key] : undefined;
    merged[key] = mergedValue(below, value, [...path, key], refuse);
  }
  return merged;
}

function mergedValue(
  below: ConfigValue | undefined,
  value: ConfigValue,
  path: readonly string[],
  refuse: Refuse | undefined,
): ConfigValue {
  if (isMap(value) && isMap(below)) return mergedMap(below, value, path, refuse);
  return refuse && isMap(value) && isList(below) ? mergedList(below, value, path, refuse) : value;
}

function mergedList(
  lower: readonly ConfigValue[],
  upper: ConfigMap,
  path: readonly string[],
  refuse: Refuse,
): readonly ConfigValue[] {
  const merged = [...lower];
  // The keys of an object that are indexes are in ascending order.
  for (const [key, value] of Object.entries(upper)) {
    const index = /^(?:0|[1-9]\d{0,8})$/.test(key) ? Number(key) : Infinity;
    if (index > merged.length) {
      refuse(
        [...path, key],
        `the list has ${merged.length} elements, and only these and the next one can be set`,
      );
    } else merged[index] = mergedValue(lower[index], value, [...path, key], refuse);
  }
  return merged;
}

function isList(value: ConfigValue | undefined): value is readonly ConfigValue[] {
  return Array.isArray(value);
}
