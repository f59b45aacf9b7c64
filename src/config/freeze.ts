import { isMap } from './config-value.js';

/** Freezes maps and arrays recursively. Instances of classes (a `URL`, a `Date`) stay as they are. */
export function deepFreeze<T>(value: T): T {
  // A frozen object was frozen with everything below it, or is part of a cycle.
  if ((!isMap(value) && !Array.isArray(value)) || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const member of Object.values(value)) deepFreeze(member);
  return value;
}
