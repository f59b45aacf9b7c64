import type { CodeOf } from '../core/errors/error-codes.js';
import { CodedError, recognize } from '../core/errors/resilient-error.js';
import type { ProblemSummary } from '../core/telemetry/telemetry-points.js';

export type ConfigErrorCode = CodeOf<'ConfigError'>;

/** One problem of a configuration: names and places, never a value. */
export interface ConfigProblem extends ProblemSummary {
  readonly code: ConfigErrorCode | CodeOf<'PackageError'>;
}

/** A configuration cannot be used. Neither its message nor its problems quote a value of the configuration. */
export class ConfigError extends CodedError<'ConfigError'> {
  override readonly name = 'ConfigError';
  /** Everything that is wrong, in the order of the sources. */
  readonly problems: readonly ConfigProblem[];

  constructor(
    code: ConfigErrorCode,
    message: string,
    options?: ErrorOptions & { readonly problems?: readonly ConfigProblem[] },
  ) {
    super(code, message, options);
    this.problems = options?.problems ?? [];
  }
}
recognize(ConfigError, 'ConfigError');
