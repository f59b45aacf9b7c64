import { describe, matching, milliseconds, PORT_OPTIONS, resolveOptions } from '../core/options.js';
import type { Clock } from '../core/clock.js';
import type { ConfigSource } from './config-source.js';
import { isStandardSchema } from './standard-schema.js';
import type { ConfigValidator } from './validation.js';

/** Options of `ConfigLoader`. `sources` is needed, and so is `validate` for a `T` of one's own. */
export interface ConfigLoaderOptions<T> {
  /** The layers, from the lowest: later ones win. */
  readonly sources: readonly ConfigSource[];
  /** Turns merged values into the configuration, or refuses them. Default: they are taken as they are. */
  readonly validate?: ConfigValidator<T> | undefined;
  /** How long reading and parsing one source may take, ms. Default 5 000. Synchronous work cannot be cut short. */
  readonly parseTimeoutMs?: number | undefined;
  /** How long `validate` may take, ms. Default 5 000. Synchronous work cannot be cut short. */
  readonly validateTimeoutMs?: number | undefined;
  /** Sources that change within this time of the first one change in one step, ms. Default 50. */
  readonly settleMs?: number | undefined;
  /** Closes the loader when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** Default: the machine's own. */
  readonly clock?: Clock | undefined;
}

const OPTIONS = {
  sources: matching<readonly ConfigSource[] | undefined>(undefined, 'an array of sources', Array.isArray),
  validate: matching<ConfigValidator<unknown>>(
    (values) => values,
    'a function or a Standard Schema',
    (value) => typeof value === 'function' || isStandardSchema(value),
  ),
  // A mebibyte is parsed in well under a second; a server that is asked answers in that time or not at all.
  parseTimeoutMs: milliseconds(5_000, { min: 1 }),
  validateTimeoutMs: milliseconds(5_000, { min: 1 }),
  // The files of one volume change at once, and their watchers tell within a few ms.
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
      `ConfigLoader: option "sources" must be an array of sources, got ${describe(sources)}`,
    );
  }
  return { ...options, sources };
}
