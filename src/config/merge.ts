import { isMap, type ConfigMap, type ConfigValue } from './config-value.js';

/** The values of one source, ready to be merged. */
export interface Layer {
  /** The name of the source. */
  readonly source: string;
  readonly values: ConfigMap;
  /** Whether its keys match those of lower layers regardless of case and dashes. */
  readonly ignoresCase: boolean;
}

/**
 * Merges layers from the lowest to the highest without changing them. Two maps are merged
 * recursively; anything else, arrays and null included, is replaced (the rule of koanf's `maps.Merge`).
 */
export function mergeLayers(layers: readonly Layer[]): {
  readonly values: ConfigMap;
  /** The layers as they were merged; if case is ignored, with the spelling of lower layers. */
  readonly layers: readonly Layer[];
} {
  let values: ConfigMap = {};
  const merged = layers.map((layer) => {
    const spelled = layer.ignoresCase ? { ...layer, values: spelledAs(values, layer.values) } : layer;
    values = mergedMap(values, spelled.values);
    return spelled;
  });
  return { values, layers: merged };
}

function mergedMap(lower: ConfigMap, upper: ConfigMap): ConfigMap {
  const merged: Record<string, ConfigValue> = { ...lower };
  for (const [key, value] of Object.entries(upper)) {
    const below = Object.hasOwn(lower, key) ? lower[key] : undefined;
    merged[key] = isMap(value) && isMap(below) ? mergedMap(below, value) : value;
  }
  return merged;
}

/** `map` with its keys spelled like keys of `known` that differ only in case and dashes, unless that is ambiguous. */
function spelledAs(known: ConfigMap, map: ConfigMap): ConfigMap {
  const spellings = new Map<string, string | undefined>();
  for (const key of Object.keys(known)) {
    const folded = foldedKey(key);
    spellings.set(folded, spellings.has(folded) ? undefined : key);
  }
  const entries = Object.entries(map).map(([key, value]): [string, ConfigValue] => {
    const name = Object.hasOwn(known, key) ? key : (spellings.get(foldedKey(key)) ?? key);
    const below = known[name];
    const isNested = Object.hasOwn(known, name) && isMap(value) && isMap(below);
    return [name, isNested ? spelledAs(below, value) : value];
  });
  return Object.fromEntries(entries);
}

function foldedKey(key: string): string {
  return key.toLowerCase().replaceAll('-', '');
}
