import { isMap } from './config-value.js';

/**
 * Sets a value in nested maps, creating missing maps. Returns false without setting it when the key, or one above it, is
 * already set to a value.
 * @param path at least one key, each of them allowed
 */
export function putValue(map: Record<string, unknown>, path: readonly string[], value: unknown): boolean {
  let target = map;
  for (const key of path.slice(0, -1)) {
    const below = Object.hasOwn(target, key) ? target[key] : (target[key] = {});
    if (!isMap(below)) return false;
    target = below;
  }
  const last = path.at(-1) ?? '';
  if (Object.hasOwn(target, last)) return false;
  target[last] = value;
  return true;
}
