/** Turns merged values into a configuration. */
import type { Clock } from '../core/ports/clock.js';
import { withDeadline } from '../core/scheduling/deadline.js';
import { ConfigError, type ConfigProblem } from './config-error.js';
import { isMap, type ConfigMap } from './config-value.js';
import { jsonSchemaOf } from './json-schema.js';
import { NO_SOURCE } from './problems.js';
import { problemsOf, thrownIssues } from './schema-issues.js';
import { mergeLayers, type Layer } from './merge.js';

/**
 * The part of Standard Schema (version 1) that is used here; zod, valibot, arktype and others implement it.
 * See https://standardschema.dev.
 */
export interface StandardSchema<Output> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

/** The result of a schema: the value to use, or the issues. */
export type SchemaResult<Output> =
  { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly SchemaIssue[] };

/** One problem. */
export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/**
 * A schema of a library that implements Standard Schema (zod, valibot, arktype), or a function that receives a copy
 * of the merged values, returns the configuration and throws when they are invalid. Both may be asynchronous. Messages
 * are not shown, because they may quote a value; a problem has the path and the expected type. To say more, a function
 * throws a `ConfigError`, whose message is shown as it is; so are its `problems`, each at the place of its `path`.
 */
export type ConfigValidator<T> = StandardSchema<T> | ((values: unknown) => T | Promise<T>);

/** The result of validating layers. */
export type Verdict<T> = ({ readonly config: T } | { readonly problems: readonly ConfigProblem[] }) & {
  /** As they were merged. */
  readonly layers: readonly Layer[];
};

/** The validator and its ports. */
export interface ValidationOptions<T> {
  /** Undefined: the merged values are the configuration. */
  readonly validate: ConfigValidator<T> | undefined;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Merges the layers and validates the result. Whatever the validator does, this rejects only when the signal aborts.
 */
export async function validateLayers<T>(
  given: readonly Layer[],
  { validate, timeoutMs, clock, signal }: ValidationOptions<T>,
): Promise<Verdict<T>> {
  const schema = jsonSchemaOf(validate);
  const { values, problems, layers } = mergeLayers(given, schema);
  if (problems.length > 0) return { problems, layers };
  if (!validate) return { config: deepFreeze(values as T, new Set()), layers };
  const refuse = async (issues: readonly unknown[]): Promise<Verdict<T>> => ({
    problems: await problemsOf(issues, { layers, schema }),
    layers,
  });
  const late = new ConfigError('ERR_CONFIG_TIMEOUT', `validate did not return within ${timeoutMs} ms`);
  try {
    const answer = await withDeadline(() => ask(validate, structuredClone(values)), {
      clock,
      timeoutMs,
      signal,
      late: () => late,
    });
    return 'issues' in answer ? await refuse(answer.issues) : { ...answer, layers };
  } catch (error) {
    if (signal.aborted) throw error;
    return error === late
      ? { problems: [{ code: late.code, source: NO_SOURCE, message: late.message }], layers }
      : await refuse(thrownIssues(error));
  }
}

async function ask<T>(
  validate: ConfigValidator<T>,
  values: ConfigMap,
): Promise<{ readonly config: T } | { readonly issues: readonly unknown[] }> {
  const result: unknown = isStandardSchema(validate)
    ? await validate['~standard'].validate(values)
    : { value: await validate(values) };
  const { issues, value } = Object(result) as { readonly issues?: unknown; readonly value?: T };
  if (issues) return { issues: Array.isArray(issues) && issues.length > 0 ? issues : [issues] };
  if (value === undefined) {
    const message = 'validate returned undefined instead of a configuration';
    return { issues: [new ConfigError('ERR_CONFIG_SCHEMA', message)] };
  }
  return { config: deepFreeze(value, new Set()) };
}

/** Freezes maps and arrays recursively. Instances of classes (a `URL`, a `Date`) stay as they are. */
function deepFreeze<T>(value: T, done: Set<unknown>): T {
  // An object that is already frozen is not skipped: a schema may freeze only the top level.
  if ((!isMap(value) && !Array.isArray(value)) || done.has(value)) return value;
  done.add(Object.freeze(value));
  for (const member of Object.values(value)) deepFreeze(member, done);
  return value;
}

/** Whether a value is a Standard Schema. The schemas of arktype are functions. */
export function isStandardSchema(value: unknown): value is StandardSchema<unknown> {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  const standard = (value as { readonly '~standard'?: { readonly validate?: unknown } })['~standard'];
  return typeof standard?.validate === 'function';
}
