/** The values of a configuration: what JSON can hold, and nothing that could change what objects are. */
import { isDate } from 'node:util/types';

import { ConfigError } from '../core/errors.js';

/** Keys to values; what a source gives. */
export interface ConfigMap {
  readonly [key: string]: ConfigValue;
}

/** A value of a configuration. Text formats with dates give them as text. */
export type ConfigValue = string | number | bigint | boolean | null | readonly ConfigValue[] | ConfigMap;

/** Assigned to, they reach the prototype that all objects share. */
const POLLUTING_KEYS = ['__proto__', 'constructor', 'prototype'];

/** No configuration is nested that deep; a cycle of YAML aliases is, and so is an attack on the stack. */
const DEEPEST = 200;

/** Whether a value is a map: an object that is neither an array nor of a class. */
export function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/**
 * A copy of what a parser or provider gave, made of nothing but maps, arrays and plain values. Members that are
 * undefined are left out; dates become text.
 * @throws {ConfigError} `ERR_CONFIG_REFUSED` when the top is no map, at a key that pollutes prototypes, at a value
 * of a kind no configuration has (a function, an object of a class), and when it is nested too deeply.
 */
export function configMapOf(value: unknown): ConfigMap {
  if (!isMap(value)) throw refused([], `must be a map at the top, got ${kindOf(value)}`);
  return copyMap(value, []);
}

function copyMap(map: Readonly<Record<string, unknown>>, path: readonly string[]): ConfigMap {
  const copy: Record<string, ConfigValue> = {};
  for (const key of Object.keys(map)) {
    const at = [...path, key];
    if (POLLUTING_KEYS.includes(key)) throw refused(at, `the key "${key}" is not allowed`);
    if (map[key] !== undefined) copy[key] = copyValue(map[key], at);
  }
  return copy;
}

function copyValue(value: unknown, path: readonly string[]): ConfigValue {
  if (path.length > DEEPEST)
    throw refused([], `it is nested more than ${DEEPEST} levels deep, or in a circle`);
  if (Array.isArray(value)) return value.map((item, index) => copyValue(item ?? null, [...path, `${index}`]));
  if (isMap(value)) return copyMap(value, path);
  if (isDate(value)) return value.toISOString();
  if (value === null || ['string', 'number', 'bigint', 'boolean'].includes(typeof value)) {
    return value as ConfigValue;
  }
  throw refused(path, `must be a plain value, got ${kindOf(value)}`);
}

function refused(path: readonly string[], message: string): ConfigError {
  const code = 'ERR_CONFIG_REFUSED';
  return new ConfigError(code, message, { problems: [{ code, source: '', path, message }] });
}

/** What kind of thing it is; nothing of the value itself. */
function kindOf(value: unknown): string {
  if (value === null || value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object of a class' : `a ${typeof value}`;
}
