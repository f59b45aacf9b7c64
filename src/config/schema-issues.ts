/**
 * What a validator refuses, without the values that it refuses. Its own messages may quote any of them, in full, in part
 * or encoded, and nothing tells a secret from a word. So a problem says where, and what the schema wants; only a message
 * that somebody has written to be shown, that of a `ConfigError`, is passed on.
 */
import { shortened } from '../core/redaction.js';
import { ConfigError, type ConfigProblem } from './config-error.js';
import { isMap } from './config-value.js';
import type { Layer } from './merge.js';

/** Nobody reads more issues than this. */
const MAX_PROBLEMS = 100;

/** A path is of names, and names are short. */
const MAX_KEY_LENGTH = 100;

/** The names of types in zod, valibot and arktype. */
const TYPES: ReadonlySet<string> = new Set(
  'string number integer int bigint boolean date array object record map set tuple null undefined never'.split(
    ' ',
  ),
);

/** The source of problems that do not come from a single source. */
export const NO_SOURCE = 'validate';

/**
 * Converts the issues of a validator into problems without values. The issues may have any shape, because a validator
 * may throw anything.
 * @param issues `{ message, path }` each, as in Standard Schema.
 * @param layers the layers that were merged into these values.
 */
export function problemsOf(issues: readonly unknown[], layers: readonly Layer[]): readonly ConfigProblem[] {
  // A copy, because arrays of arktype are instances of a class, of which map() would create more.
  const problems = [...issues.slice(0, MAX_PROBLEMS)].map((issue): ConfigProblem => {
    const path = pathOf(issue);
    const origin =
      path.length > 0 ? layers.findLast((layer) => depthOf(layer.values, path) === path.length) : undefined;
    return {
      code: 'ERR_CONFIG_SCHEMA',
      source: origin?.source ?? NO_SOURCE,
      path: path.map((key) => shortened(key, MAX_KEY_LENGTH)),
      message: messageOf(issue),
    };
  });
  const more = issues.length - problems.length;
  if (more > 0) {
    problems.push({ code: 'ERR_CONFIG_SCHEMA', source: NO_SOURCE, message: `${more} more problems` });
  }
  return problems;
}

/** The issues of a thrown value: those that schema libraries attach to their errors, or else the error itself. */
export function thrownIssues(thrown: unknown): readonly unknown[] {
  const issues = member(thrown, 'issues');
  return Array.isArray(issues) && issues.length > 0 ? issues : [thrown];
}

function messageOf(issue: unknown): string {
  if (issue instanceof ConfigError) return issue.message;
  const expected = expectedType(issue);
  if (expected !== undefined) return `expected ${expected}`;
  const rule = ['code', 'type'].map((name) => member(issue, name)).find(isIdentifier);
  if (rule !== undefined) return `refused by the rule ${rule}${limitIn(issue)}`;
  const kind = [issue instanceof Error ? issue.name : undefined].find(isIdentifier);
  return `refused${kind === undefined ? '' : ` (${kind})`}; to say why, throw a ConfigError`;
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

/** The bound of the rule, as zod and valibot give it. */
function limitIn(issue: unknown): string {
  const limit = ['minimum', 'maximum', 'requirement'].map((name) => member(issue, name)).find(isNumber);
  return limit === undefined ? '' : ` (${limit})`;
}

function pathOf(issue: unknown): string[] {
  const path = member(issue, 'path');
  if (!Array.isArray(path)) return [];
  return [...(path as unknown[])].map((part) => {
    const key = typeof part === 'object' && part !== null ? member(part, 'key') : part;
    return ['string', 'number', 'symbol', 'bigint'].includes(typeof key) ? String(key) : '?';
  });
}

/** A member of any value; undefined if it is missing or a getter that throws. */
function member(of: unknown, name: string): unknown {
  try {
    return (Object(of) as Readonly<Record<string, unknown>>)[name];
  } catch {
    return undefined;
  }
}

/** The number of keys of a path that exist. */
export function depthOf(value: unknown, path: readonly string[]): number {
  let below = value;
  for (const [depth, key] of path.entries()) {
    const has =
      (isMap(below) || Array.isArray(below)) && Object.prototype.propertyIsEnumerable.call(below, key);
    if (!has) return depth;
    below = (below as Readonly<Record<string, unknown>>)[key];
  }
  return path.length;
}
