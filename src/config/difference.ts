import { isDate } from 'node:util/types';

import { isMap } from './config-value.js';

/**
 * Whether two values are equal: maps, arrays and dates by what they contain, everything else by identity. Instances of
 * classes may have state that nobody else sees (`#private` fields, a `URL`, `Headers`), so two of them are different.
 * @param around the pairs that contain this one: values that contain themselves are equal if all else is.
 */
export function isSame(
  a: unknown,
  b: unknown,
  around: readonly (readonly [unknown, unknown])[] = [],
): boolean {
  if (Object.is(a, b) || around.some(([outerA, outerB]) => outerA === a && outerB === b)) return true;
  if (isDate(a) && isDate(b)) return Object.is(a.getTime(), b.getTime());
  const areArrays = Array.isArray(a) && Array.isArray(b);
  if (!areArrays && !(isMap(a) && isMap(b))) return false;
  const [keys, others] = [Object.keys(a), Object.keys(b)];
  if (keys.length !== others.length || (areArrays && a.length !== b.length)) return false;
  const [left, right] = [a, b] as Readonly<Record<string, unknown>>[];
  const pairs = [...around, [a, b] as const];
  return keys.every((key) => Object.hasOwn(b, key) && isSame(left?.[key], right?.[key], pairs));
}

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
