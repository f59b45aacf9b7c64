import type { Clock } from '../core/ports/clock.js';
import { withDeadline } from '../core/scheduling/deadline.js';
import { describe } from '../core/options/options.js';
import { sleep } from '../core/scheduling/sleep.js';
import { ConfigError } from './config-error.js';

/** How a new configuration proves itself after it has become `current`. */
export interface ConfigTrial<T> {
  /** Whether the program works with it. Asked until the answer is true; a failure counts as false. */
  readonly healthy: (config: T) => boolean | Promise<boolean>;
  /** How long it has for that, ms. */
  readonly ms: number;
}

export function isConfigTrial(value: unknown): value is ConfigTrial<unknown> {
  const { healthy, ms } = Object(value) as Partial<ConfigTrial<unknown>>;
  return typeof healthy === 'function' && typeof ms === 'number' && ms > 0 && ms <= LONGEST_MS;
}

/** An update that comes in the meantime waits for as long. */
const LONGEST_MS = 3_600_000;

/** How often a configuration is asked for in the time of its trial. */
const ASKED = 10;

/**
 * Asks whether the configuration is healthy, until it is or its time is over.
 * @returns why it is not; undefined if it is. Rejects only when the signal aborts.
 */
export async function faultOf<T>(
  config: T,
  { healthy, ms }: ConfigTrial<T>,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<ConfigError | undefined> {
  let cause: unknown;
  const late = (): ConfigError =>
    new ConfigError('ERR_CONFIG_UNHEALTHY', `the new configuration was not healthy within ${ms} ms`, {
      ...(cause !== undefined && { cause }),
    });
  const becomesHealthy = async (inTime: AbortSignal): Promise<void> => {
    for (;;) {
      try {
        cause = undefined;
        const isHealthy: unknown = await healthy(config);
        if (isHealthy === true) return;
        // A response would be true, whatever its status.
        if (isHealthy !== false)
          cause = new TypeError(`healthy must return a boolean, got ${describe(isHealthy)}`);
      } catch (error) {
        cause = error;
      }
      await sleep(clock, ms / ASKED, { signal: inTime });
    }
  };
  try {
    await withDeadline(becomesHealthy, { clock, timeoutMs: ms, signal, late });
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    return error as ConfigError;
  }
}
