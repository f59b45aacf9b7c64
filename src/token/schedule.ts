import type { Random } from '../core/ports/random.js';
import type { TokenLease } from './lease.js';
import type { ServiceAccountToken } from './token.js';

/**
 * Returns how long to keep a token before the next one is requested, ms.
 * @param now epoch ms by the clock that dated the token, so that `token.expiresAt - now` is its remaining lifetime.
 */
export type TokenSchedule = (token: ServiceAccountToken, now: number, random: Random) => number;

/** kubelet's `maxTTL`: the longest time between two tokens, even if they are valid for a year. */
const LONGEST_MS = 24 * 60 * 60 * 1000;

/** The name of a built-in schedule. */
export type TokenScheduleName = 'quarter' | 'kubelet';

/**
 * - `quarter`: after 25% to 50% of the remaining lifetime, as Calico does. At least half of it is left to outlast an
 *   outage of the API server, and the jitter spreads the requests of a fleet.
 * - `kubelet`: at 80% of the token's lifetime, minus up to 10 s, as kubelet does with projected tokens.
 */
export const tokenSchedules = {
  quarter: (token, now, random) => {
    const delayMs = ((token.expiresAt - now) / 4) * (1 + random());
    // The maximum has jitter as well: otherwise a fleet with one-year tokens would send its requests all at once.
    return Math.min(delayMs, LONGEST_MS * (1 - random() / 2));
  },
  kubelet: (token, now, random) => {
    const issuedAt = token.issuedAt ?? now;
    const keepMs = Math.min(0.8 * (token.expiresAt - issuedAt), LONGEST_MS);
    return issuedAt + keepMs - random() * 10_000 - now;
  },
} satisfies Record<TokenScheduleName, TokenSchedule>;

/** A schedule of at most `intervalMs`, with up to 50% jitter. */
export function everyInterval(intervalMs: number): TokenSchedule {
  return (_token, _now, random) => intervalMs * (1 - random() / 2);
}

/**
 * How often a token is requested while the current one is replaced late: as often as client-go reads the token file.
 */
const LATE_MS = 60_000;

/**
 * The lower bound for every schedule, so that a client that keeps returning its old token is not called more often. It
 * also holds when tokens are valid for less, as by a clock that is ahead by nearly their life.
 */
export const SOONEST_MS = 5_000;

/**
 * The result of a schedule within bounds: at least `leewayMs` before the token expires (for a token that expires soon
 * after that, after three quarters of its remaining lifetime), and at least 5 s in any case. For a token that is
 * replaced late, at most a minute.
 * @throws {RangeError} when a custom schedule returns anything but a number.
 */
export function planRefresh(
  schedule: TokenSchedule,
  lease: Pick<TokenLease, 'token' | 'remainingMs' | 'acceptedMs'>,
  options: { readonly now: number; readonly leewayMs: number; readonly random: Random },
): number {
  const { leewayMs, random } = options;
  const { token } = lease;
  const isLate = lease.remainingMs() <= 0;
  const remainingMs = isLate ? lease.acceptedMs() : lease.remainingMs();
  const ends = Number.isFinite(remainingMs);
  const now = ends ? token.expiresAt - remainingMs : options.now;
  const delayMs: unknown = (isLate ? everyInterval(LATE_MS) : schedule)(token, now, random);
  if (typeof delayMs !== 'number' || Number.isNaN(delayMs)) {
    throw new RangeError(`A token schedule must return a number of ms, got ${String(delayMs)}`);
  }
  const latestMs = ends ? remainingMs - Math.min(leewayMs, remainingMs / 4) : LONGEST_MS;
  return Math.max(Math.min(delayMs, latestMs), SOONEST_MS);
}
