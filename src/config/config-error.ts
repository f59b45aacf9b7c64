import { ResilientError } from '../core/resilient-error.js';
import type { ProblemSummary } from '../core/telemetry-messages.js';

/** What is wrong with a configuration. */
export type ConfigErrorCode =
  /** No usable configuration was found; `problems` lists everything that is wrong. */
  | 'ERR_CONFIG_INVALID'
  /** There is nothing at the path, and it is not optional. */
  | 'ERR_CONFIG_MISSING'
  /** A source cannot be read. */
  | 'ERR_CONFIG_UNREADABLE'
  /** There are more bytes than `maxBytes`. */
  | 'ERR_CONFIG_TOO_LARGE'
  /** The text is not in the format of the parser. */
  | 'ERR_CONFIG_PARSE'
  /** The values are refused: a key that would change a prototype, or the top level is not a map. */
  | 'ERR_CONFIG_REFUSED'
  /** `validate` rejects the merged values. */
  | 'ERR_CONFIG_SCHEMA'
  /** A parser or `validate` did not answer in time. */
  | 'ERR_CONFIG_TIMEOUT'
  /** An optional package is required and not installed. */
  | 'ERR_CONFIG_PACKAGE'
  /** The provider is already being watched. */
  | 'ERR_CONFIG_WATCHED'
  /** The file is mounted in a way that never shows an update (`subPath`). */
  | 'ERR_CONFIG_FROZEN';

/** One thing that is wrong with a configuration: names and places, never a value. */
export interface ConfigProblem extends ProblemSummary {
  readonly code: ConfigErrorCode;
}

/** A configuration cannot be used. Neither its message nor its problems quote a value of the configuration. */
export class ConfigError extends ResilientError {
  override readonly name = 'ConfigError';
  readonly code: ConfigErrorCode;
  /** Everything that is wrong, in the order of the sources. */
  readonly problems: readonly ConfigProblem[];

  constructor(
    code: ConfigErrorCode,
    message: string,
    options?: ErrorOptions & { readonly problems?: readonly ConfigProblem[] },
  ) {
    super(message, options);
    this.code = code;
    this.problems = options?.problems ?? [];
  }
}
