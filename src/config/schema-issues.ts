/**
 * What a validator refuses, without the values that it refuses. Its own messages may quote any of them, in full, in part
 * or encoded, and nothing tells a secret from a word. So a problem says where, and what the schema wants; only a message
 * that somebody has written to be shown, that of a `ConfigError`, is passed on.
 */
import { shortened } from '../core/options/redaction.js';
import { ConfigError, type ConfigProblem } from './config-error.js';
import { allowedAt, isSecretPath } from './config-description.js';
import { member, valueAt } from './config-value.js';
import { isServiceLink, SERVICE_LINK } from './environment.js';
import { originOf, type Layer } from './merge.js';
import { listed, MAX_PROBLEMS, NO_SOURCE, problemAt } from './problems.js';
import type { Place } from './places.js';

/** A path is of names, and names are short. */
const MAX_KEY_LENGTH = 100;

/** The names of types in zod, valibot and arktype. */
const TYPES: ReadonlySet<string> = new Set(
  'string number integer int bigint boolean date array object record map set tuple null undefined never'.split(
    ' ',
  ),
);

/** What was validated. */
interface Validated {
  /** The layers that were merged into the values. */
  readonly layers: readonly Layer[];
  /** The JSON Schema of the validator, if it has one. */
  readonly schema: unknown;
}

/**
 * Converts the issues of a validator into problems without values. The issues may have any shape, because a validator
 * may throw anything.
 * @param issues `{ message, path }` each, as in Standard Schema.
 */
export async function problemsOf(
  issues: readonly unknown[],
  { layers, schema }: Validated,
): Promise<readonly ConfigProblem[]> {
  const problemOf = async (issue: unknown): Promise<ConfigProblem> => {
    const path = pathOf(issue);
    const origin = path.length > 0 ? originOf(layers, path) : undefined;
    const place = origin && (await placeIn(origin, path));
    const allowed = isSecretPath(path) ? undefined : allowedBy(schema, path, issue);
    const message = messageOf(issue, { allowed, isMissing: path.length > 0 && origin === undefined });
    const isLink = origin?.setsPaths === true && isServiceLink(valueAt(origin.values, path));
    return problemAt(
      'ERR_CONFIG_SCHEMA',
      origin?.source ?? NO_SOURCE,
      isLink ? `${message}; ${SERVICE_LINK}` : message,
      {
        ...place,
        path: path.map((key) => shortened(key, MAX_KEY_LENGTH)),
      },
    );
  };
  const problems: ConfigProblem[] = [];
  const all = issues.flatMap(eachKeyOf);
  // Not all at once: each may read a text again to find its line.
  for (const issue of all.slice(0, MAX_PROBLEMS)) problems.push(await problemOf(issue));
  return listed(problems, all.length);
}

/** Where a value of a layer stands. A parser of other code may fail to find it. */
export async function placeIn({ placeOf }: Layer, path: readonly string[]): Promise<Place | undefined> {
  try {
    return await placeOf?.(path);
  } catch {
    return undefined;
  }
}

/**
 * The issues of a thrown value: the problems of a `ConfigError`, whose messages are shown; those that schema libraries
 * attach to their errors; or else the error itself.
 */
export function thrownIssues(thrown: unknown): readonly unknown[] {
  if (thrown instanceof ConfigError && thrown.problems.length > 0) {
    return thrown.problems.map(({ code, message, path }) =>
      Object.assign(new ConfigError(code as ConfigError['code'], message), { path }),
    );
  }
  const issues = member(thrown, 'issues');
  return Array.isArray(issues) && issues.length > 0 ? issues : [thrown];
}

/** The issues of zod about keys that the schema does not have name these keys, and the path of their map. */
function eachKeyOf(issue: unknown): readonly unknown[] {
  const keys = member(issue, 'code') === 'unrecognized_keys' ? listOf(member(issue, 'keys')) : undefined;
  return keys?.map((key) => ({ code: 'unrecognized_keys', path: [...pathOf(issue), key] })) ?? [issue];
}

/** The rules that refuse a key which the schema does not have: of zod, and of valibot and arktype. */
function isUnknownKey(issue: unknown): boolean {
  return member(issue, 'code') === 'unrecognized_keys' || member(issue, 'expected') === 'never';
}

/** The rules of valibot and arktype that a missing key breaks, and no other value at its path. */
const REQUIRING: ReadonlySet<unknown> = new Set([
  'object',
  'strict_object',
  'loose_object',
  'object_with_rest',
  'required',
]);

/**
 * @param allowed the values that the schema allows there, in words.
 * @param isMissing whether no source has a value there.
 */
function messageOf(
  issue: unknown,
  { allowed, isMissing }: { readonly allowed: string | undefined; readonly isMissing: boolean },
): string {
  if (issue instanceof ConfigError) return issue.message;
  const missing = isMissing ? 'missing; ' : '';
  if (allowed !== undefined) return `${missing}expected one of ${allowed}`;
  if (isUnknownKey(issue)) return 'the schema has no such key';
  const expected = expectedType(issue);
  if (expected !== undefined) return `${missing}expected ${expected}`;
  const rule = ['code', 'type'].map((name) => member(issue, name)).find(isIdentifier);
  if (isMissing && REQUIRING.has(rule)) return 'missing';
  if (rule !== undefined) return `refused by the rule ${rule}${detailOf(issue)}`;
  const kind = [issue instanceof Error ? issue.name : undefined].find(isIdentifier);
  return `refused${kind === undefined ? '' : ` (${kind})`}; to say why, throw a ConfigError`;
}

/** The values that are allowed at a path, in words: from the JSON Schema, or from the issue. */
function allowedBy(schema: unknown, path: readonly string[], issue: unknown): string | undefined {
  const values = allowedAt(schema, path) ?? valuesIn(issue);
  const isShown = values?.every(
    (value) => value === null || ['string', 'number', 'boolean'].includes(typeof value),
  );
  return isShown === true ? values?.map((value) => JSON.stringify(value)).join(', ') : listedIn(issue);
}

/**
 * The values that a schema allows, as the issues of zod 4, zod 3 and arktype have them: not every schema can be written as
 * a JSON Schema.
 */
function valuesIn(issue: unknown): readonly unknown[] | undefined {
  const code = member(issue, 'code');
  const [values, options] = ['values', 'options'].map((name) => listOf(member(issue, name)));
  if (code === 'invalid_value') return values;
  if (code === 'invalid_literal') return [member(issue, 'expected')];
  if (code === 'unit') return [member(issue, 'unit')];
  if (!UNIONS.has(code)) return undefined;
  if (options) return options;
  const all = alternativesIn(issue).map(valuesIn);
  return all.every((some) => some !== undefined) ? listOf(all.flat()) : undefined;
}

/** The codes of issues about one of several values or types. */
const UNIONS: ReadonlySet<unknown> = new Set([
  'invalid_enum_value',
  'invalid_union_discriminator',
  'invalid_union',
  'union',
]);

/** Undefined if it is empty or not a list. */
function listOf(value: unknown): readonly unknown[] | undefined {
  return Array.isArray(value) && value.length > 0 ? (value as readonly unknown[]) : undefined;
}

/** Why each alternative of a union refuses the value; none if one of them refuses a part of it. */
function alternativesIn(issue: unknown): readonly unknown[] {
  const [errors, unionErrors] = ['errors', 'unionErrors'].map((name) => member(issue, name));
  // Those of zod 4 are lists of issues, with paths that begin at the union.
  const isRelative = Array.isArray(errors) && errors.every(Array.isArray);
  const issuesOf = (error: unknown): unknown => member(error, 'issues');
  const all: unknown = Array.isArray(unionErrors) ? unionErrors.map(issuesOf) : errors;
  const alternatives: readonly unknown[] = Array.isArray(all) ? all.flat() : [];
  const depth = isRelative ? 0 : pathOf(issue).length;
  return alternatives.every((each) => pathOf(each).length === depth) ? alternatives : [];
}

/** The types of valibot that list the values that they allow. */
const ENUMS: ReadonlySet<unknown> = new Set(['picklist', 'enum', 'literal', 'variant']);

/** The words of an enum: valibot has no JSON Schema, and its `expected` is made of the schema alone. */
function listedIn(issue: unknown): string | undefined {
  const [kind, type, expected] = ['kind', 'type', 'expected'].map((name) => member(issue, name));
  const isEnum = kind === 'schema' && ENUMS.has(type) && expected !== 'Object';
  const words = isEnum || isUnionOfLiterals(issue) ? expected : undefined;
  return typeof words === 'string' ? words.replace(/^\((.*)\)$/, '$1').replaceAll(' | ', ', ') : undefined;
}

function isUnionOfLiterals(issue: unknown): boolean {
  const alternatives = member(issue, 'type') === 'union' ? listOf(member(issue, 'issues')) : undefined;
  return alternatives?.every((each) => member(each, 'type') === 'literal') === true;
}

/** The type that a schema wants. What else libraries have in this member may quote the value. */
function expectedType(issue: unknown): string | undefined {
  const expected = member(issue, 'expected');
  const isType = typeof expected === 'string' && TYPES.has(expected.replace(/^an? /, ''));
  return isType ? expected : undefined;
}

const isIdentifier = (text: unknown): text is string =>
  typeof text === 'string' && /^[a-z]\w{0,40}$/i.test(text);

const isNumber = (value: unknown): value is number => typeof value === 'number';

/** The bound of the rule, as zod and valibot give it, or the format, as zod 4 and zod 3 do. */
function detailOf(issue: unknown): string {
  const limit = ['minimum', 'maximum', 'requirement'].map((name) => member(issue, name)).find(isNumber);
  const format = ['format', 'validation'].map((name) => member(issue, name)).find(isIdentifier);
  const detail = limit ?? format;
  return detail === undefined ? '' : ` (${detail})`;
}

function pathOf(issue: unknown): string[] {
  const path = member(issue, 'path');
  if (!Array.isArray(path)) return [];
  return [...(path as unknown[])].map((part) => {
    const key = typeof part === 'object' && part !== null ? member(part, 'key') : part;
    return ['string', 'number', 'symbol', 'bigint'].includes(typeof key) ? String(key) : '?';
  });
}
