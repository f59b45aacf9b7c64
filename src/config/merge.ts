import { isMap, type ConfigMap } from './config-value.js';

/**
 * Layers merged into one new map: where two layers both have a map these are merged, too; anything else, arrays
 * and null included, is replaced by what the later layer has (the rule of koanf's `maps.Merge`). Shares nothing
 * with the layers.
 */
export function mergeLayers(layers: readonly ConfigMap[]): ConfigMap {
  const merged = {};
  for (const layer of layers) mergeInto(merged, layer);
  return merged;
}

function mergeInto(target: Record<string, unknown>, layer: ConfigMap): void {
  for (const [key, value] of Object.entries(layer)) {
    const below = Object.hasOwn(target, key) ? target[key] : undefined;
    if (isMap(value) && isMap(below)) mergeInto(below, value);
    else target[key] = structuredClone(value);
  }
}
