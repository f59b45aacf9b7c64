import type { Clock } from '../core/clock.js';
import {
  describe,
  matching,
  milliseconds,
  nonEmptyString,
  PORT_OPTIONS,
  resolveOptions,
} from '../core/options.js';
import type { ConfigSource } from './config-source.js';
import type { ConfigMap } from './config-value.js';
import { isStandardSchema } from './standard-schema.js';
import type { ConfigValidator } from './validation.js';

interface LoaderOptions<T> {
  /** The layers, from the lowest to the highest: later ones take precedence. */
  readonly sources: readonly ConfigSource[];
  /**
   * Converts the merged values into the configuration, or refuses them. By default the merged values are the
   * configuration, of the type `ConfigMap`.
   */
  readonly validate?: ConfigValidator<T> | undefined;
  /** The name of the loader in its status and telemetry. Default `config`. */
  readonly name?: string | undefined;
  /** How long reading and parsing a source may take, ms. Default 5 000. Synchronous work cannot be interrupted. */
  readonly parseTimeoutMs?: number | undefined;
  /** How long `validate` may take, ms. Default 5 000. Synchronous work cannot be interrupted. */
  readonly validateTimeoutMs?: number | undefined;
  /**
   * How long to wait after a source has changed for the others to change too, so that they become one `change`, ms.
   * If all watched sources have changed, in particular with a single one, there is no wait. Default 50.
   */
  readonly settleMs?: number | undefined;
  /** Closes the loader when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** Default: the system clock. */
  readonly clock?: Clock | undefined;
}

/**
 * Options of `ConfigLoader`. `sources` is required. So is `validate`, unless the configuration is a `ConfigMap`: any other
 * type can only come from a validator.
 */
export type ConfigLoaderOptions<T = ConfigMap> = LoaderOptions<T> &
  (ConfigMap extends T ? unknown : { readonly validate: ConfigValidator<T> });

const OPTIONS = {
  sources: matching<readonly ConfigSource[] | undefined>(undefined, 'an array of sources', Array.isArray),
  validate: matching<ConfigValidator<unknown>>(
    (values) => values,
    'a function or a Standard Schema',
    (value) => typeof value === 'function' || isStandardSchema(value),
  ),
  name: nonEmptyString('config'),
  // 1 MiB is parsed in well under a second; a remote server answers within that time or not at all.
  parseTimeoutMs: milliseconds(5_000, { min: 1 }),
  validateTimeoutMs: milliseconds(5_000, { min: 1 }),
  // The files of one volume change together, and their watchers report that within a few ms.
  settleMs: milliseconds(50),
  signal: PORT_OPTIONS.signal,
  clock: PORT_OPTIONS.clock,
};

/** The options of a loader, complete and checked. */
export type ResolvedLoaderOptions = ReturnType<typeof resolveOptions<typeof OPTIONS>> & {
  readonly sources: readonly ConfigSource[];
};

/**
 * Fills in the defaults.
 * @throws {TypeError} for an unknown option, one of the wrong type, or no sources.
 * @throws {RangeError} for a number out of range.
 */
export function resolveLoaderOptions(given: unknown): ResolvedLoaderOptions {
  const { sources, ...options } = resolveOptions('ConfigLoader', given, OPTIONS);
  if (!sources || sources.length === 0) {
    throw new TypeError(
      `ConfigLoader: option "sources" must be an array of at least one source, got ${describe(sources)}`,
    );
  }
  return { ...options, sources };
}
