import { isMap } from './config-value.js';

/** Freezes maps and arrays all the way down. Objects of classes (a `URL`, a `Date`) stay as they are. */
export function deepFreeze<T>(value: T): T {
  // What is frozen already was frozen whole, or is a circle.
  if ((!isMap(value) && !Array.isArray(value)) || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const member of Object.values(value)) deepFreeze(member);
  return value;
}
