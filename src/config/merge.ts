import { isMap, type ConfigMap, type ConfigValue } from './config-value.js';

/** The values of one source, ready to be merged. */
export interface Layer {
  /** The name of the source. */
  readonly source: string;
  readonly values: ConfigMap;
  /** Whether its keys match those of lower layers regardless of case. */
  readonly ignoresCase: boolean;
}

/**
 * Merges layers from the lowest to the highest into a new map that shares nothing with them. Two maps are merged
 * recursively; anything else, arrays and null included, is replaced (the rule of koanf's `maps.Merge`).
 */
export function mergeLayers(layers: readonly Layer[]): {
  readonly values: ConfigMap;
  /** The layers as they were merged; where case is ignored, with the spelling of lower layers. */
  readonly layers: readonly Layer[];
} {
  const values: Record<string, ConfigValue> = {};
  const merged = layers.map((layer) => {
    const spelled = layer.ignoresCase ? { ...layer, values: spelledAs(values, layer.values) } : layer;
    mergeInto(values, spelled.values);
    return spelled;
  });
  return { values, layers: merged };
}

/** A copy that shares no map or array. */
export function copyOf<T extends ConfigValue>(value: T): T;
export function copyOf(value: ConfigValue): ConfigValue {
  if (Array.isArray(value)) return (value as readonly ConfigValue[]).map((item) => copyOf(item));
  if (!isMap(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, copyOf(member)]));
}

function mergeInto(target: Record<string, ConfigValue>, layer: ConfigMap): void {
  for (const [key, value] of Object.entries(layer)) {
    const below = Object.hasOwn(target, key) ? target[key] : undefined;
    if (isMap(value) && isMap(below)) mergeInto(below, value);
    else target[key] = copyOf(value);
  }
}

/** `map` with keys that differ from a key of `known` only in case spelled like that key, unless that is ambiguous. */
function spelledAs(known: ConfigMap, map: ConfigMap): ConfigMap {
  const spellings = new Map<string, string | undefined>();
  for (const key of Object.keys(known)) {
    const folded = key.toLowerCase();
    spellings.set(folded, spellings.has(folded) ? undefined : key);
  }
  const entries = Object.entries(map).map(([key, value]): [string, ConfigValue] => {
    const name = Object.hasOwn(known, key) ? key : (spellings.get(key.toLowerCase()) ?? key);
    const below = known[name];
    const isNested = Object.hasOwn(known, name) && isMap(value) && isMap(below);
    return [name, isNested ? spelledAs(below, value) : value];
  });
  return Object.fromEntries(entries);
}
