import { expect, test } from 'vitest';

import { everyInterval, planRefresh, tokenSchedules } from '../../src/token/schedule.js';
import { ServiceAccountToken } from '../../src/token/token.js';

const HOUR = 3_600_000;
const YEAR = 365 * 24 * HOUR;

function tokenOf(lifeMs: number): ServiceAccountToken {
  return new ServiceAccountToken('t', { issuedAt: 0, notBefore: 0, expiresAt: lifeMs, notAfter: lifeMs });
}

function plan(
  schedule: Parameters<typeof planRefresh>[0],
  lifeMs: number,
  ageMs: number,
  chance: number,
  acceptedMs = lifeMs,
): number {
  const lease = {
    token: tokenOf(lifeMs),
    remainingMs: () => lifeMs - ageMs,
    acceptedMs: () => acceptedMs - ageMs,
  };
  return planRefresh(schedule, lease, { now: ageMs, leewayMs: 10_000, random: () => chance });
}

test.each<[keyof typeof tokenSchedules, number, number, number, number]>([
  ['quarter', 24 * HOUR, 0, 0, 6 * HOUR],
  ['quarter', 24 * HOUR, 0, 0.5, 9 * HOUR],
  ['quarter', 24 * HOUR, 12 * HOUR, 0, 3 * HOUR],
  ['quarter', YEAR, 0, 0, 24 * HOUR],
  ['quarter', YEAR, 0, 0.5, 18 * HOUR],
  ['quarter', Infinity, 0, 0, 24 * HOUR],
  ['quarter', 12_000, 0, 0, 5_000],
  ['quarter', 4_000, 0, 0, 5_000],
  ['quarter', 6_000, 0, 0, 5_000],
  ['kubelet', 3_607_000, 0, 0, 2_885_600],
  ['kubelet', 3_607_000, 0, 0.5, 2_880_600],
  ['kubelet', 3_607_000, 1_000_000, 0, 1_885_600],
  ['kubelet', 3_607_000, 3_590_000, 0, 5_000],
  ['kubelet', YEAR, 0, 0, 24 * HOUR],
] as const)(
  '%s: of a life of %d ms after %d ms, with chance %d, the next check is in %d ms',
  (name, ...row) => {
    const [lifeMs, ageMs, chance, expected] = row;
    expect(plan(tokenSchedules[name], lifeMs, ageMs, chance)).toBe(expected);
  },
);

test.each([
  ['a fixed interval', everyInterval(2 * HOUR), 0, 2 * HOUR],
  ['a fixed interval with chance', everyInterval(2 * HOUR), 0.5, 1.5 * HOUR],
  ['an interval beyond the end', everyInterval(48 * HOUR), 0, 24 * HOUR - 10_000],
  ['an answer below zero', () => -1, 0, 5_000],
  ['an infinite answer', () => Infinity, 0, 24 * HOUR - 10_000],
])('%s is kept within bounds', (_, schedule, chance, expected) => {
  expect(plan(schedule, 24 * HOUR, 0, chance)).toBe(expected);
});

test.each([[NaN], [undefined], ['3'], [null]])('a schedule that returns %s is refused', (answer) => {
  expect(() => plan((() => answer) as never, HOUR, 0, 0)).toThrow(RangeError);
});

test.each([
  [YEAR, 0, 60_000],
  [YEAR, 0.5, 45_000],
  [Infinity, 0, 60_000],
  [HOUR + 40_000, 0, 30_000],
  [HOUR + 4, 0, 5_000],
])('a late token that is accepted until %d ms is replaced in at most a minute', (end, chance, expected) => {
  for (const schedule of [tokenSchedules.quarter, tokenSchedules.kubelet, () => -1]) {
    expect(plan(schedule, HOUR, HOUR, chance, end)).toBe(expected);
  }
});
