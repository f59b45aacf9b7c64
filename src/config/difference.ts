import { isDeepStrictEqual } from 'node:util';

import { isMap } from './config-value.js';

/** Whether two values are deeply equal. */
export const isSame: (a: unknown, b: unknown) => boolean = isDeepStrictEqual;

/**
 * The paths at which two configurations differ, as deep as maps go; an array differs as a whole. The empty path
 * means the configurations themselves, when they are no maps.
 */
export function differingPaths(
  previous: unknown,
  current: unknown,
  path: readonly string[] = [],
): (readonly string[])[] {
  if (isSame(previous, current)) return [];
  if (!isMap(previous) || !isMap(current)) return [path];
  const keys = new Set([...Object.keys(previous), ...Object.keys(current)]);
  return [...keys].flatMap((key) => differingPaths(own(previous, key), own(current, key), [...path, key]));
}

function own(map: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(map, key) ? map[key] : undefined;
}
