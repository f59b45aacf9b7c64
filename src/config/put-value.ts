import { isMap } from './config-value.js';

/**
 * Puts a value at a path of nested maps, making those that are missing. False, and nothing is put, when something is
 * there already or a value stands in the way.
 */
export function putValue(map: Record<string, unknown>, path: readonly string[], value: unknown): boolean {
  const [key = '', ...rest] = path;
  const known = Object.hasOwn(map, key) ? map[key] : undefined;
  if (rest.length === 0 ? known !== undefined : known !== undefined && !isMap(known)) return false;
  const below = rest.length === 0 ? value : (known ?? {});
  // Plain assignment would lose a key "__proto__" before it can be refused.
  Object.defineProperty(map, key, { value: below, writable: true, enumerable: true, configurable: true });
  return rest.length === 0 || putValue(below as Record<string, unknown>, rest, value);
}
