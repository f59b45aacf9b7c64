import { Backoff } from '../core/scheduling/backoff.js';
import type { Clock } from '../core/ports/clock.js';
import { waitAtMost } from '../core/scheduling/deadline.js';
import { callback, milliseconds, PORT_OPTIONS, required, resolveOptions } from '../core/options/options.js';
import { systemRandom } from '../core/ports/random.js';
import type { WatchedValue } from '../watch/watched-value.js';
import type { Credentials } from './credentials.js';
import type { Secret } from './secret-file.js';

/** Options of `retryLogin`. */
export interface RetryLoginOptions {
  /** Whether an error means that the server refused the login. Any other error is thrown. May be asynchronous. */
  readonly isRefused: (error: unknown) => boolean | Promise<boolean>;
  /** How long to try, ms. Default 90,000: kubelet takes up to a minute to project a changed Secret. */
  readonly timeoutMs?: number | undefined;
  /** Default: the clock of the system. */
  readonly clock?: Clock | undefined;
}

const OPTIONS = {
  isRefused: required(callback<RetryLoginOptions['isRefused']>(() => false)),
  timeoutMs: milliseconds(90_000),
  clock: PORT_OPTIONS.clock,
};

/** The first and the longest pause, ms. A change of the file ends a pause. */
const PAUSES = { firstDelayMs: 50, maxDelayMs: 1_000 };

/**
 * Runs `work` with the current login, and repeats it while the server refuses that login, because the server has the
 * new password before the file does, or the reverse. `work` is one login, one query or one transaction. Repeating is
 * safe, because nothing was executed before the login.
 *
 * ```ts
 * const login = credentials('/etc/db');
 * const isRefused = (error: unknown) => (error as { code?: string }).code === '28P01'; // of PostgreSQL
 * const client = await retryLogin(login, ({ username, password }) => connect(username, password), { isRefused });
 * ```
 * Rejects with the server's error after `timeoutMs`, and as `login.get()` does when there is no login.
 * @throws {TypeError | RangeError} (rejects) for a wrong option.
 */
export async function retryLogin<T extends Secret | Credentials, R>(
  login: WatchedValue<T>,
  work: (login: T) => R | Promise<R>,
  options: RetryLoginOptions,
): Promise<R> {
  const { isRefused, timeoutMs, clock } = resolveOptions('retryLogin', options, OPTIONS);
  const end = clock.monotonic() + timeoutMs;
  const pauses = new Backoff({ ...PAUSES, random: systemRandom });
  for (;;) {
    const current = await login.get();
    try {
      return await work(current);
    } catch (error) {
      if (!(await isRefused(error)) || clock.monotonic() >= end) throw error;
    }
    const change = (signal: AbortSignal): Promise<T> => login.changed({ previous: current, signal });
    await waitAtMost(change, { clock, timeoutMs: pauses.next() });
  }
}
