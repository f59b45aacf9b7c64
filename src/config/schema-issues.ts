import type { ConfigProblem } from './config-error.js';
import { isMap, type ConfigMap } from './config-value.js';
import type { Layer } from './merge.js';
import { ValueRedaction } from './value-redaction.js';

/** Nobody reads more issues than this, and redacting each takes time. */
const MAX_PROBLEMS = 100;

/** The source of problems that do not come from a single source. */
export const NO_SOURCE = 'validate';

/**
 * Converts the issues of a validator into problems without values. The issues may have any shape, because a validator
 * may throw anything.
 * @param issues `{ message, path }` each, as in Standard Schema.
 * @param values the values that were validated.
 * @param layers the layers that were merged into these values.
 */
export function problemsOf(
  issues: readonly unknown[],
  values: ConfigMap,
  layers: readonly Layer[],
): readonly ConfigProblem[] {
  const redaction = new ValueRedaction(values);
  // A copy, because arrays of arktype are instances of a class, of which map() would create more.
  const problems = [...issues.slice(0, MAX_PROBLEMS)].map((issue): ConfigProblem => {
    const path = pathOf(issue);
    const origin =
      path.length > 0 ? layers.findLast((layer) => depthOf(layer.values, path) === path.length) : undefined;
    const known = depthOf(values, path);
    return {
      code: 'ERR_CONFIG_SCHEMA',
      source: origin?.source ?? NO_SOURCE,
      path: path.map((key, depth) => (depth < known ? key : redaction.key(key))),
      message: redaction.message(messageOf(issue)),
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
  const message = typeof issue === 'string' ? issue : member(issue, 'message');
  return typeof message === 'string' && message !== '' ? message : 'refused without a message';
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
