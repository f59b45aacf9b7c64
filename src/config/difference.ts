import { isDeepStrictEqual } from 'node:util';

import { isMap } from './config-value.js';

/** Whether two values are deeply equal. */
export const isSame: (a: unknown, b: unknown) => boolean = isDeepStrictEqual;

/**
 * The paths at which two configurations differ. Maps are compared key by key; everything else, including arrays, is
 * compared as a whole, and so is a map within itself. For configurations that are not maps, the path is empty.
 * @param above the maps around `current`.
 */
export function differingPaths(
  previous: unknown,
  current: unknown,
  path: readonly string[] = [],
  above: readonly unknown[] = [],
): (readonly string[])[] {
  if (!isMap(previous) || !isMap(current) || above.includes(current)) {
    return isSame(previous, current) ? [] : [path];
  }
  const keys = new Set([...Object.keys(previous), ...Object.keys(current)]);
  return [...keys].flatMap((key) => {
    if (!Object.hasOwn(previous, key) || !Object.hasOwn(current, key)) return [[...path, key]];
    return differingPaths(previous[key], current[key], [...path, key], [...above, current]);
  });
}
