/**
 * Reads options: `undefined` means the default, everything is checked once, and the error for a wrong option names it,
 * its value and what is expected. The caller's object is never changed.
 */
import { fileURLToPath } from 'node:url';

import { nodeFileSystem } from '../ports/builtins.js';
import type { FileSystem, FileSystemWith } from '../ports/file-system.js';
import { systemClock, type Clock } from '../ports/clock.js';
import { systemRandom, type Random } from '../ports/random.js';
import { nearest } from './nearest.js';
import { redact, shortened } from './redaction.js';

/** One option: its default, and the check of its value. */
export interface Option<T> {
  readonly fallback: T;
  /** Returns the error to throw for a value, or undefined if the value is valid. */
  readonly refuse: (value: unknown) => Mismatch | undefined;
  /** The name of another option that a value which was given must not exceed. */
  readonly atMost?: string | undefined;
}

export interface Mismatch {
  readonly kind: 'type' | 'range';
  /** Completes "must be …". */
  readonly wanted: string;
  /** Completes "got …". Default: a description of the value. */
  readonly got?: string;
}

type Options = Readonly<Record<string, Option<unknown>>>;
export type Resolved<O extends Options> = {
  readonly [K in keyof O]: O[K] extends Option<infer T> ? T : never;
};

/** In place of a default: the option is required. */
const REQUIRED = Symbol('required');

/**
 * The options of `owner` with defaults filled in. If none is given, the result is the same object each time.
 * @param noun the word for an option in messages.
 * @throws {TypeError} for something that is not an object, an unknown name, a value of the wrong type, or a required
 * option that is missing.
 * @throws {RangeError} for a number out of range.
 */
export function resolveOptions<O extends Options>(
  owner: string,
  given: unknown,
  options: O,
  noun = 'option',
): Resolved<O> {
  const { fallbacks, required } = defaultsOf(options);
  const values = objectOf(owner, noun, given);
  // This runs for each atomic write, so only the options that are given take time.
  let resolved: Record<string, unknown> | undefined;
  const bounded: [name: string, bound: string][] = [];
  for (const name in values) {
    const option = Object.hasOwn(options, name) ? options[name] : undefined;
    if (!option) throw unknownName(owner, noun, name, Object.keys(options));
    const value = values[name];
    if (value === undefined) continue;
    const refusal = option.refuse(value);
    if (refusal) throw refused(`${owner}: ${noun} "${name}"`, refusal, value);
    resolved ??= { ...fallbacks };
    resolved[name] = value;
    if (option.atMost !== undefined) bounded.push([name, option.atMost]);
  }
  for (const [name, bound] of bounded) {
    const [value, most] = [resolved?.[name], resolved?.[bound]] as number[];
    if (Number(value) <= Number(most)) continue;
    const message = `${owner}: ${noun} "${name}" must be at most "${bound}" (ms), got ${value} and ${most}`;
    throw new RangeError(message);
  }
  for (const name of required) {
    const refusal = values[name] === undefined && options[name]?.refuse(undefined);
    if (refusal) throw refused(`${owner}: ${noun} "${name}"`, refusal, undefined);
  }
  return (resolved ?? fallbacks) as Resolved<O>;
}

function refused(what: string, { kind, wanted, got }: Mismatch, value: unknown): Error {
  const message = `${what} must be ${wanted}, got ${got ?? describe(value)}`;
  return kind === 'type' ? new TypeError(message) : new RangeError(message);
}

/**
 * The options of a class that passes some on to another class: its own with defaults filled in, and those to pass on,
 * unchecked.
 * @param others the names of the options to pass on.
 * @throws {TypeError | RangeError} as `resolveOptions`; for a name that is neither its own nor one of `others`.
 */
export function divideOptions<O extends Options, T extends object>(
  owner: string,
  given: T | undefined,
  own: O,
  others: readonly string[],
): { readonly own: Resolved<O>; readonly rest: Omit<T, keyof O> } {
  const mine: Record<string, unknown> = {};
  const rest: Record<string, unknown> = {};
  const values = objectOf(owner, 'option', given);
  for (const name in values) {
    if (Object.hasOwn(own, name)) mine[name] = values[name];
    else if (others.includes(name)) rest[name] = values[name];
    else throw unknownName(owner, 'option', name, [...Object.keys(own), ...others]);
  }
  return { own: resolveOptions(owner, mine, own), rest: rest as Omit<T, keyof O> };
}

function objectOf(owner: string, noun: string, given: unknown): Readonly<Record<string, unknown>> {
  if (given === undefined) return {};
  if (typeof given === 'object' && given !== null && !Array.isArray(given))
    return given as Readonly<Record<string, unknown>>;
  throw new TypeError(`${owner}: ${noun}s must be an object, got ${describe(given)}`);
}

function unknownName(owner: string, noun: string, name: string, known: readonly string[]): TypeError {
  const near = nearest(name, known);
  // Any name of two letters is two changes away from any other.
  const hint = near && 2 * near.distance < name.length ? `the nearest one is "${near.name}"; ` : '';
  return new TypeError(`${owner}: unknown ${noun} "${name}"; ${hint}known are ${known.join(', ')}`);
}

/** The defaults of a set of options, and the names of those that have none. */
interface Defaults {
  readonly fallbacks: Readonly<Record<string, unknown>>;
  readonly required: readonly string[];
}

const defaults = new WeakMap<Options, Defaults>();

function defaultsOf(options: Options): Defaults {
  let known = defaults.get(options);
  if (!known) {
    const entries = Object.entries(options).map(([name, { fallback }]) => [name, fallback] as const);
    const required = entries.filter(([, fallback]) => fallback === REQUIRED).map(([name]) => name);
    // Not frozen: a spread of a frozen object takes six times as long.
    known = { fallbacks: Object.fromEntries(entries), required };
    defaults.set(options, known);
  }
  return known;
}

/** Describes a value for an error message: short, without credentials, and without the contents of objects. */
export function describe(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(shortened(redact(value), 60));
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object' && value !== null)
    return isPlainObject(value) ? 'an object' : instance(value);
  if (typeof value === 'function') return 'a function';
  return typeof value === 'bigint' ? `${value}n` : String(value);
}

/** "a Server"; "an object" if its class has no name. */
function instance({ constructor }: object): string {
  const name = typeof constructor === 'function' && constructor.name !== '' ? constructor.name : 'object';
  return `${/^[aeiou]/i.test(name) ? 'an' : 'a'} ${name}`;
}

/** A finite number of at least `min` (default 0) and at most `max`. */
export function number(
  fallback: number,
  { min = 0, max = Number.MAX_SAFE_INTEGER, unit = '' }: { min?: number; max?: number; unit?: string } = {},
): Option<number> {
  const range = max === Number.MAX_SAFE_INTEGER ? `>= ${min}` : `between ${min} and ${max}`;
  const wanted = `a finite number ${range}${unit && ` (${unit})`}`;
  return {
    fallback,
    refuse: (value) => {
      if (typeof value !== 'number') return { kind: 'type', wanted };
      return Number.isFinite(value) && value >= min && value <= max ? undefined : { kind: 'range', wanted };
    },
  };
}

/** @param range `atMost`: the name of another option that a value which was given must not exceed. */
export function milliseconds(
  fallback: number,
  { atMost, ...range }: { min?: number; max?: number; atMost?: string } = {},
): Option<number> {
  return { ...number(fallback, { ...range, unit: 'ms' }), atMost };
}

/** A value that passes `accept`; `wanted` describes in words what is accepted. */
export function matching<T>(fallback: T, wanted: string, accept: (value: unknown) => boolean): Option<T> {
  return { fallback, refuse: (value) => (accept(value) ? undefined : { kind: 'type', wanted }) };
}

/** The same without a default: undefined if it is not given. */
export function optional<T>({ refuse }: Option<T>): Option<T | undefined> {
  return { fallback: undefined, refuse };
}

/** The same, but required. */
export function required<T>({ refuse }: Option<T | undefined>): Option<T> {
  return { fallback: REQUIRED as T, refuse };
}

export function flag(fallback: boolean): Option<boolean> {
  return matching(fallback, 'a boolean', (value) => typeof value === 'boolean');
}

export function nonEmptyString<T extends string | undefined>(fallback: T): Option<string | T> {
  return matching<string | T>(fallback, 'a non-empty string', isNonEmptyString);
}

export function isNonEmptyString(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

export function oneOf<T extends string>(fallback: T, words: readonly T[]): Option<T> {
  return matching(fallback, `one of ${words.map((word) => `"${word}"`).join(', ')}`, (value) =>
    (words as readonly unknown[]).includes(value),
  );
}

/** An object that is recognized by its methods. */
export function port<T extends object | undefined>(
  fallback: T,
  ...methods: readonly (keyof NonNullable<T> & string)[]
): Option<T> {
  return matching(fallback, `an object with ${methods.join(', ')}`, (value) => hasMethods(value, methods));
}

export function callback<T extends (...args: never[]) => unknown>(fallback: T): Option<T> {
  return matching(fallback, 'a function', (value) => typeof value === 'function');
}

function abortSignal(): Option<AbortSignal | undefined> {
  return matching<AbortSignal | undefined>(
    undefined,
    'an AbortSignal',
    (value) => value instanceof AbortSignal,
  );
}

/** A file system with these calls. Default: `node:fs`. */
export function fileSystem<K extends keyof FileSystem>(...calls: readonly K[]): Option<FileSystemWith<K>> {
  return port<FileSystemWith<K>>(nodeFileSystem, ...calls);
}

/** The ports of a feature that waits. Default: the system's clock and random numbers, no signal. */
export const PORT_OPTIONS = {
  signal: abortSignal(),
  clock: port<Clock>(systemClock, 'now', 'monotonic', 'schedule'),
  random: callback<Random>(systemRandom),
};

export function hasMethods(value: unknown, methods: readonly string[]): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return methods.every((name) => typeof (value as Record<string, unknown>)[name] === 'function');
}

/** Whether a value is a plain object of any realm: not an array, a Map or an instance of a class. */
export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

export function isStringMap(value: unknown): value is Readonly<Record<string, string>> {
  return isPlainObject(value) && Object.values(value).every((each) => typeof each === 'string');
}

/** Whether a value is a path: a non-empty string without NUL bytes, or a `file:` URL. */
export function isPath(value: unknown): value is string | URL {
  if (typeof value === 'string') return value !== '' && !value.includes('\0');
  return value instanceof URL && value.protocol === 'file:';
}

const A_PATH = 'a non-empty string without NUL bytes or a file: URL';

/** The option of a path, which `checkPath` makes a string. Default: none. */
export const PATH_OPTION = matching<string | URL | undefined>(undefined, A_PATH, isPath);

/**
 * A path as a string.
 * @throws {TypeError} when it is neither a non-empty string without NUL bytes nor a `file:` URL.
 */
export function checkPath(owner: string, name: string, path: unknown): string {
  if (!isPath(path)) {
    const got = path instanceof URL ? path.protocol : describe(path);
    throw new TypeError(`${owner}: ${name} must be ${A_PATH}, got ${got}`);
  }
  return typeof path === 'string' ? path : fileURLToPath(path);
}
