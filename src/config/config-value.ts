/** The values of a configuration: JSON values without keys that reach the prototype of objects. */
import { isDate } from 'node:util/types';

import { isPlainObject } from '../core/options/options.js';
import { sha256 } from '../fs/snapshot.js';
import type { ConfigError } from './config-error.js';
import { configError } from './problems.js';

/** The keys and values of a source. */
export interface ConfigMap {
  readonly [key: string]: ConfigValue;
}

/** A value of a configuration. Dates of YAML and TOML become strings. */
export type ConfigValue = string | number | bigint | boolean | null | readonly ConfigValue[] | ConfigMap;

/** Assignments to these keys reach the prototype that all objects share. */
const POLLUTING_KEYS = ['__proto__', 'constructor', 'prototype'];

const PLAIN: ReadonlySet<string> = new Set(['string', 'number', 'bigint', 'boolean']);

/** Deeper than any real configuration. Cycles of YAML aliases, and attacks on the stack, exceed it. */
export const MAX_DEPTH = 200;

/** Whether a value is a map: an object that is neither an array nor an instance of a class. */
export const isMap = isPlainObject;

/**
 * Copies the result of a parser or provider into maps, arrays and plain values: undefined members are left out, dates
 * become strings.
 * @param source the name of the source in problems.
 * @throws {ConfigError} `ERR_CONFIG_PARSE` when the top level is not a map, for a polluting key, for a value that
 * cannot be written as text (a function, an instance of a class), and when it is nested more than 200 levels deep.
 */
export function configMapOf(value: unknown, source: string): ConfigMap {
  if (!isMap(value)) throw refused(source, [], `the top level must be a map, got ${kindOf(value)}`);
  return copyMap(value, source, []);
}

/** What is wrong with the path of a value; undefined if nothing is. */
export function keyProblem(path: readonly string[]): string | undefined {
  if (path.length > MAX_DEPTH) return `nested more than ${MAX_DEPTH} levels deep`;
  const bad = path.find((key) => POLLUTING_KEYS.includes(key));
  return bad === undefined ? undefined : notAllowed(bad);
}

/** What is wrong with a key that reaches the prototype. */
export function notAllowed(key: string): string {
  return `the key "${key}" is not allowed`;
}

/** @param path of the map. Changed in place below the map, because a copy for each value would be most of the work. */
function copyMap(map: Readonly<Record<string, unknown>>, source: string, path: string[]): ConfigMap {
  const copy: Record<string, ConfigValue> = {};
  for (const key of Object.keys(map)) {
    path.push(key);
    if (POLLUTING_KEYS.includes(key)) throw refused(source, path, notAllowed(key));
    if (map[key] !== undefined) copy[key] = copyValue(map[key], source, path);
    path.pop();
  }
  return copy;
}

function copyArray(items: readonly unknown[], source: string, path: string[]): ConfigValue[] {
  return items.map((item, index) => {
    path.push(`${index}`);
    const copy = copyValue(item ?? null, source, path);
    path.pop();
    return copy;
  });
}

function copyValue(value: unknown, source: string, path: string[]): ConfigValue {
  if (path.length > MAX_DEPTH)
    throw refused(source, [], `nested more than ${MAX_DEPTH} levels deep, or cyclic`);
  if (value === null || PLAIN.has(typeof value)) return value as ConfigValue;
  if (Array.isArray(value)) return copyArray(value, source, path);
  if (isMap(value)) return copyMap(value, source, path);
  if (isDate(value) && !Number.isNaN(value.getTime())) return value.toISOString();
  throw refused(source, path, `the value must be plain data, got ${kindOf(value)}`);
}

function refused(source: string, path: readonly string[], message: string): ConfigError {
  return configError('ERR_CONFIG_PARSE', source, message, { path });
}

/** The kind of a value, for messages that must not quote the value. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an instance of a class' : `a ${typeof value}`;
}

/** JavaScript would change such a number in silence. */
export const UNSAFE_NUMBER =
  'an integer beyond ±(2^53 - 1) loses digits, and a number beyond ±1.8e308 is infinite; write it as a string, in quotes';

/** Whether a number that was written like this is not the number that JavaScript has read. */
export function isUnsafeNumber(value: unknown, text: string): boolean {
  // `.inf` of YAML has no digits.
  if (typeof value !== 'number' || !/\d/.test(text)) return false;
  const isInteger = /^[-+]?(?:\d+|0x[\da-f]+|0o[0-7]+)$/i.test(text);
  return Math.abs(value) > (isInteger ? Number.MAX_SAFE_INTEGER : Number.MAX_VALUE);
}

/** The value with this path; undefined if there is none. */
export function valueAt(values: ConfigValue, path: readonly string[]): ConfigValue | undefined {
  let below: unknown = values;
  for (const key of path) {
    const isContainer = isMap(below) || Array.isArray(below);
    if (!isContainer || !Object.prototype.propertyIsEnumerable.call(below, key)) return undefined;
    below = (below as Readonly<Record<string, unknown>>)[key];
  }
  return below as ConfigValue;
}

/** The paths of values without members, with these values. */
export function* leavesOf(
  node: unknown,
  membersOf: (node: unknown) => unknown = (each) => each,
  path: readonly string[] = [],
): Generator<readonly [path: readonly string[], node: unknown]> {
  const members = membersOf(node);
  const entries = isMap(members) ? Object.entries(members) : [];
  if (entries.length === 0 && path.length > 0) yield [path, node];
  for (const [key, below] of entries) yield* leavesOf(below, membersOf, [...path, key]);
}

/** Sets a value, creating missing maps. Returns false if there is one at its path, or above or below it. */
export function setAt(map: Record<string, unknown>, path: readonly string[], value: unknown): boolean {
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

/** `sha256:…` of values, whatever the order of their keys. */
export function digestOf(values: ConfigMap): string {
  const sorted = (_: string, value: unknown): unknown => {
    if (typeof value === 'bigint') return `${value}n`;
    if (!isMap(value)) return value;
    return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
  };
  return `sha256:${sha256(JSON.stringify(values, sorted))}`;
}

/** A member of any value; undefined if it is missing or a getter that throws. */
export function member(of: unknown, name: string): unknown {
  try {
    return (Object(of) as Readonly<Record<string, unknown>>)[name];
  } catch {
    return undefined;
  }
}
