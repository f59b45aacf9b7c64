import type { Random } from '../core/random.js';
import type { ServiceAccountToken } from './token.js';

/**
 * How long to keep a token before the next one is requested, ms.
 * @param now epoch ms by the clock that dated the token, so that `token.expiresAt - now` is its remaining life.
 */
export type TokenSchedule = (token: ServiceAccountToken, now: number, random: Random) => number;

/** kubelet's `maxTTL`: the longest time between two tokens, even for one of a year. */
const LONGEST_MS = 24 * 60 * 60 * 1000;

/**
 * - `quarter`: after 25 to 50 % of what is left, as Calico does. Three more periods are left to outlast an
 *   outage of the API server, and the jitter keeps a fleet apart.
 * - `kubelet`: at 80 % of the token's life, less up to 10 s, as kubelet does with projected tokens.
 */
export const tokenSchedules = {
  quarter: (token, now, random) => {
    const delayMs = ((token.expiresAt - now) / 4) * (1 + random());
    // Jitter at the maximum, too, or a fleet with tokens of a year would send its requests at the same time.
    return Math.min(delayMs, LONGEST_MS * (1 - random() / 2));
  },
  kubelet: (token, now, random) => {
    const issuedAt = token.issuedAt ?? now;
    const keepMs = Math.min(0.8 * (token.expiresAt - issuedAt), LONGEST_MS);
    return issuedAt + keepMs - random() * 10_000 - now;
  },
} satisfies Record<string, TokenSchedule>;

/** The name of a built-in schedule. */
export type TokenScheduleName = keyof typeof tokenSchedules;

/** At most `intervalMs`, with up to 50 % jitter. */
export function everyInterval(intervalMs: number): TokenSchedule {
  return (_token, _now, random) => intervalMs * (1 - random() / 2);
}

/** Whatever a schedule returns: a client that keeps answering with its old token is not called more often. */
const SOONEST_MS = 5_000;

/**
 * A schedule's answer within bounds: at least 5 s, and at least `leewayMs` before the token expires (for a token that lives
 * hardly longer than that, after three quarters of what is left).
 * @throws {RangeError} when a schedule of the caller's answers with anything but a number.
 */
export function planRefresh(
  schedule: TokenSchedule,
  token: ServiceAccountToken,
  options: {
    readonly now: number;
    readonly remainingMs: number;
    readonly leewayMs: number;
    readonly random: Random;
  },
): number {
  const { remainingMs, leewayMs, random } = options;
  const ends = Number.isFinite(remainingMs);
  const delayMs: unknown = schedule(token, ends ? token.expiresAt - remainingMs : options.now, random);
  if (typeof delayMs !== 'number' || Number.isNaN(delayMs)) {
    throw new RangeError(`A token schedule must answer with a number of ms, got ${String(delayMs)}`);
  }
  const latestMs = ends ? remainingMs - Math.min(leewayMs, remainingMs / 4) : LONGEST_MS;
  return Math.min(Math.max(delayMs, SOONEST_MS), latestMs);
}
