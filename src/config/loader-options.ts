import type { Clock } from '../core/ports/clock.js';
import {
  matching,
  milliseconds,
  nonEmptyString,
  PORT_OPTIONS,
  required,
  type Resolved,
} from '../core/options/options.js';
import type { ConfigSource } from './config-source.js';
import type { ConfigMap } from './config-value.js';
import { isConfigTrial, type ConfigTrial } from './trial.js';
import { isStandardSchema, type ConfigValidator, type StandardSchema } from './validation.js';

interface LoaderOptions<T, V> {
  /** The layers, from the lowest to the highest: later ones take precedence. */
  readonly sources: readonly ConfigSource[];
  /**
   * Converts the merged values into the configuration, or refuses them. By default the merged values are the
   * configuration, of the type `ConfigMap`.
   */
  readonly validate?: V | undefined;
  /** The name of the loader in its status and telemetry. Default `config`. */
  readonly name?: string | undefined;
  /** How long reading and parsing a source may take, ms. Default 5,000. Synchronous work cannot be interrupted. */
  readonly parseTimeoutMs?: number | undefined;
  /** How long `validate` may take, ms. Default 5,000. Synchronous work cannot be interrupted. */
  readonly validateTimeoutMs?: number | undefined;
  /**
   * How long to wait after a source has changed for others to change, so that they become one `change`, ms. There is no
   * wait if all watched sources have changed, in particular if there is only one. Default 50.
   */
  readonly settleMs?: number | undefined;
  /**
   * Tries out each new configuration: it becomes `current`, and if it is not healthy in time, the one before returns
   * (`reverted`). The next update waits for the end of the trial. Default: every valid configuration stays.
   */
  readonly trial?: ConfigTrial<NoInfer<T>> | undefined;
  /** Closes the loader when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** Default: the system clock. */
  readonly clock?: Clock | undefined;
}

/**
 * Options of `ConfigLoader`. `sources` is required. So is `validate`, unless the configuration is a `ConfigMap`: any
 * other type can only come from a validator.
 */
export type ConfigLoaderOptions<T = ConfigMap> = LoaderOptions<T, ConfigValidator<T>> &
  (ConfigMap extends T ? unknown : { readonly validate: ConfigValidator<T> });

/** The same with a schema. Schemas of arktype are also functions, whose results are not configurations. */
export interface SchemaLoaderOptions<T> extends LoaderOptions<T, StandardSchema<T>> {
  readonly validate: StandardSchema<T>;
}

/** The checks of the options, and the defaults. */
export const LOADER_OPTIONS = {
  sources: required(
    matching<readonly ConfigSource[] | undefined>(
      undefined,
      'an array of at least one source',
      (value) => Array.isArray(value) && value.length > 0,
    ),
  ),
  validate: matching<ConfigValidator<unknown> | undefined>(
    undefined,
    'a function or a Standard Schema (a JSON Schema needs a function that applies it)',
    (value) => typeof value === 'function' || isStandardSchema(value),
  ),
  name: nonEmptyString('config'),
  // 1 MiB is parsed in well under a second; a remote server that has not answered by then never will.
  parseTimeoutMs: milliseconds(5_000, { min: 1 }),
  validateTimeoutMs: milliseconds(5_000, { min: 1 }),
  // The files of one volume change together, and their watchers report it within a few ms.
  settleMs: milliseconds(50),
  trial: matching<ConfigTrial<unknown> | undefined>(
    undefined,
    'an object with a function healthy and a positive number ms',
    isConfigTrial,
  ),
  signal: PORT_OPTIONS.signal,
  clock: PORT_OPTIONS.clock,
};

/** The options of a loader, complete and checked. */
export type ResolvedLoaderOptions = Resolved<typeof LOADER_OPTIONS>;
