/** Turns merged values into a configuration. */
import type { Clock } from '../core/clock.js';
import { withDeadline } from '../core/deadline.js';
import { ConfigError } from './config-error.js';
import type { ConfigMap } from './config-value.js';
import { deepFreeze } from './freeze.js';
import { problemsOf, thrownIssues, validatorProblem } from './schema-issues.js';
import { copyOf, mergeLayers, type Layer } from './merge.js';
import type { Verdict } from './acceptance.js';
import { isStandardSchema, type StandardSchema } from './standard-schema.js';

/**
 * A schema of a library that implements Standard Schema (zod, valibot, arktype), or a function that receives a copy
 * of the merged values, returns the configuration and throws when they are invalid. Both may be asynchronous.
 */
export type ConfigValidator<T> = StandardSchema<T> | ((values: unknown) => T | Promise<T>);

/** The validator and its ports. */
interface ValidationOptions<T> {
  readonly validate: ConfigValidator<T>;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Merges the layers and validates the result. Resolves whatever the validator does; rejects only when the signal aborts.
 */
export async function validateLayers<T>(
  layers: readonly Layer[],
  { validate, timeoutMs, clock, signal }: ValidationOptions<T>,
): Promise<Verdict<T>> {
  const merged = mergeLayers(layers);
  const refuse = (issues: readonly unknown[]): Verdict<T> => ({
    problems: problemsOf(issues, merged.values, merged.layers),
  });
  const late = new ConfigError('ERR_CONFIG_TIMEOUT', `validate did not return within ${timeoutMs} ms`);
  try {
    const answer = await withDeadline(() => ask(validate, copyOf(merged.values)), {
      clock,
      timeoutMs,
      signal,
      late: () => late,
    });
    return 'issues' in answer ? refuse(answer.issues) : answer;
  } catch (error) {
    if (signal.aborted) throw error;
    return error === late
      ? { problems: [validatorProblem(late.code, late.message)] }
      : refuse(thrownIssues(error));
  }
}

async function ask<T>(
  validate: ConfigValidator<T>,
  values: ConfigMap,
): Promise<{ readonly config: T } | { readonly issues: readonly unknown[] }> {
  if (!isStandardSchema(validate)) {
    const config = await validate(values);
    return config === undefined
      ? { issues: [new Error('the function returned undefined instead of a configuration')] }
      : { config: deepFreeze(config) };
  }
  const result: unknown = await validate['~standard'].validate(values);
  if (typeof result !== 'object' || result === null) {
    return { issues: [new Error('the schema returned neither a value nor issues')] };
  }
  const { issues, value } = result as { readonly issues?: unknown; readonly value?: T };
  if (!issues) return { config: deepFreeze(value as T) };
  return { issues: Array.isArray(issues) ? issues : [issues] };
}
