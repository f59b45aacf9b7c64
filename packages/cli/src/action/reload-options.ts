import type { Clock, Random } from 'resilient-watcher';
import {
  hasMethods,
  matching,
  milliseconds,
  nonEmptyString,
  PORT_OPTIONS,
  required,
  resolveOptions,
} from 'resilient-watcher/internal';

import type { Action } from './action.js';

/** Options of `ReloadAction`; all but `action` may be left out. */
export interface ReloadActionOptions {
  /** One action, or several that run one after another. A retry begins with the one that failed. */
  readonly action: Action | readonly Action[];
  /**
   * A check that must succeed before the actions run, such as `nginx -t`. An update that comes meanwhile is checked
   * before the next action. Default none.
   */
  readonly check?: Action | undefined;
  /** The timeout of a run, ms. The run is then stopped, and has failed unless it still fulfills. Default 30,000. */
  readonly timeoutMs?: number | undefined;
  /** How long to wait for a run that is being stopped, ms. Default 15,000. */
  readonly stopTimeoutMs?: number | undefined;
  /** The maximum random delay of an update, ms, so that many pods do not reload at once. Default 0. */
  readonly splayMs?: number | undefined;
  /**
   * How long the next update waits after a success, ms, so that many changes lead to few reloads. Updates that come
   * meanwhile are merged. Default 0.
   */
  readonly cooldownMs?: number | undefined;
  /** Initial delay before a retry, doubled on each failure, with up to 50% jitter, ms. Default 1,000. */
  readonly retryDelayMs?: number | undefined;
  /** The maximum delay before a retry, ms. Default 60,000. */
  readonly maxRetryDelayMs?: number | undefined;
  /** The maximum number of attempts for an update. Default `Infinity`. */
  readonly maxAttempts?: number | undefined;
  /** The name in status and telemetry. Default: the name of the first action. */
  readonly name?: string | undefined;
  /** Closes the reload action when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** Default: the system clock. */
  readonly clock?: Clock | undefined;
  /** Default: `Math.random`. */
  readonly random?: Random | undefined;
}

const isAction = (value: unknown): boolean => hasMethods(value, ['run']);

const OPTIONS = {
  action: required(
    matching<Action | readonly Action[] | undefined>(
      undefined,
      'an object with run, or a non-empty array of them',
      (value) => isAction(value) || (Array.isArray(value) && value.length > 0 && value.every(isAction)),
    ),
  ),
  check: matching<Action | undefined>(undefined, 'an object with run', isAction),
  // As in consul-template.
  timeoutMs: milliseconds(30_000, { min: 1 }),
  // A command gets 10 s between SIGTERM and SIGKILL.
  stopTimeoutMs: milliseconds(15_000),
  splayMs: milliseconds(0),
  cooldownMs: milliseconds(0),
  retryDelayMs: milliseconds(1_000, { min: 1, atMost: 'maxRetryDelayMs' }),
  maxRetryDelayMs: milliseconds(60_000, { min: 1 }),
  maxAttempts: matching<number>(
    Infinity,
    'a whole number >= 1, or Infinity',
    (value) => value === Infinity || (Number.isInteger(value) && (value as number) >= 1),
  ),
  name: nonEmptyString(undefined),
  ...PORT_OPTIONS,
};

/** The options of a reload action, complete and checked. */
export type ResolvedReloadOptions = ReturnType<typeof resolveReloadOptions>;

/**
 * Fills in the defaults.
 * @throws {TypeError | RangeError} for a wrong option.
 */
// eslint-disable-next-line @typescript-eslint/explicit-module-boundary-types -- derived from the table above
export function resolveReloadOptions(given: ReloadActionOptions) {
  const options = resolveOptions('ReloadAction', given, OPTIONS);
  const actions = [options.action].flat() as readonly Action[];
  return { ...options, actions, name: options.name ?? actions[0]?.name ?? '' };
}
