/** How merged values become a configuration. */
import { withDeadline } from '../core/deadline.js';
import { ConfigError, type ConfigProblem } from '../core/errors.js';
import type { Clock } from '../core/clock.js';
import { isMap, type ConfigMap } from './config-value.js';
import { deepFreeze } from './freeze.js';
import { mergeLayers } from './merge.js';
import { withoutValues } from './redaction.js';
import { isStandardSchema, type SchemaIssue, type StandardSchema } from './standard-schema.js';
import type { Verdict } from './layers.js';

/**
 * A schema of any library that speaks Standard Schema (zod, valibot, arktype), or a function that gets the merged
 * values (its own copy), returns the configuration, and throws when they are wrong. May be asynchronous.
 */
export type ConfigValidator<T> = StandardSchema<T> | ((values: unknown) => T | Promise<T>);

/** What validating needs. */
export interface ValidationOptions<T> {
  readonly validate: ConfigValidator<T>;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** The names of the layers. */
  readonly sources: readonly string[];
}

/** What cannot be said to come from one source. */
const NO_SOURCE = 'validate';

/** Merges the layers and validates the result. Rejects only when the signal aborts. */
export async function validateLayers<T>(
  layers: readonly ConfigMap[],
  options: ValidationOptions<T>,
): Promise<Verdict<T>> {
  const { clock, signal, timeoutMs } = options;
  const values = mergeLayers(layers);
  const late = new ConfigError('ERR_CONFIG_TIMEOUT', `validate gave no answer within ${timeoutMs} ms`);
  try {
    return await withDeadline(() => judge(mergeLayers(layers), options.validate), {
      clock,
      timeoutMs,
      signal,
      late: () => late,
    }).then((verdict) => ('issues' in verdict ? { problems: problemsOf(verdict.issues) } : verdict));
  } catch (error) {
    if (signal.aborted) throw error;
    if (error === late) {
      return { problems: [{ code: late.code, source: NO_SOURCE, message: late.message }] };
    }
    const { issues } = Object(error) as { readonly issues?: unknown };
    if (Array.isArray(issues) && issues.length > 0) return { problems: problemsOf(issues as SchemaIssue[]) };
    const message = error instanceof Error ? error.message : String(error);
    return { problems: problemsOf([{ message }]) };
  }

  function problemsOf(issues: readonly SchemaIssue[]): ConfigProblem[] {
    // Copies: arktype's arrays are of classes of their own, and map() would make more of those.
    return [...issues].map((issue) => {
      const path = [...(issue.path ?? [])].map((part) => String(typeof part === 'object' ? part.key : part));
      const layer = layers.findLastIndex((candidate) => holds(candidate, path));
      return {
        code: 'ERR_CONFIG_SCHEMA',
        source: (path.length > 0 ? options.sources[layer] : undefined) ?? NO_SOURCE,
        path,
        message: withoutValues(issue.message, values),
      };
    });
  }
}

async function judge<T>(
  values: ConfigMap,
  validate: ConfigValidator<T>,
): Promise<{ readonly config: T } | { readonly issues: readonly SchemaIssue[] }> {
  if (!isStandardSchema(validate)) {
    const config = await validate(values);
    if (config === undefined)
      return { issues: [{ message: 'the function returned undefined, not a configuration' }] };
    return { config: deepFreeze(config) };
  }
  const result = await validate['~standard'].validate(values);
  return result.issues ? { issues: result.issues } : { config: deepFreeze(result.value) };
}

/** Whether a layer has something at the path. */
function holds(layer: unknown, path: readonly string[]): boolean {
  const [key, ...rest] = path;
  if (key === undefined) return true;
  const below =
    Array.isArray(layer) || isMap(layer) ? Object.entries(layer).find(([name]) => name === key) : undefined;
  return below !== undefined && holds(below[1], rest);
}
