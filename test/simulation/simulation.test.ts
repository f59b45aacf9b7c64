/** Schedules from fixed seeds; `docs/internals/invariants.md` has the invariants. A failure is printed with the command that repeats it. */
import { expect, test } from 'vitest';

import { startSimulation } from './processes.js';

const simulation = startSimulation(2);

/** The work is bounded by its counts, and takes minutes on a machine whose cores are taken. */
const HANG_LIMIT = { timeout: 600_000 };

/** 500 schedules in two halves, one for each process. */
test.concurrent.each([
  [1, 250],
  [251, 250],
])(
  'the invariants hold in schedules of all kinds, from seed %i on %i of them',
  HANG_LIMIT,
  async (seed, runs) => {
    expect(await simulation.run('--seed', `${seed}`, '--runs', `${runs}`)).toMatch(/^250 schedules in .*$/);
  },
);

/** The first decisions of a schedule with two publications. */
const ONE_SWAP = '0,0,0,0,0,1';

test.concurrent(
  'the invariants hold wherever others act in a schedule of the kind volume with one swap',
  HANG_LIMIT,
  async () => {
    expect(await simulation.run('--kind', 'volume', '--exhaustive', '--choices', ONE_SWAP)).toMatch(
      /^\d{3,} schedules in .*$/,
    );
  },
);

/** Each durability, each fate, and each call before which it is met; at the end, writes that are synchronous. */
test.concurrent.each([
  ['write-file', '0,0,0,0,0,*,*,*'],
  ['write-volume', '0,0,0,0,0,*,*,*'],
  ['write-file', '0,0,0,0,0,1,1,*,0,0,0,0,0,0,0,0,0,0,2'],
])(
  'a writer of the kind %s is killed, fails or loses power before each call: %s',
  HANG_LIMIT,
  async (kind, pattern) => {
    expect(await simulation.run('--kind', kind, '--each', pattern)).toMatch(/^\d{2,} schedules in .*$/);
  },
);

test('a seed determines a schedule completely', HANG_LIMIT, async () => {
  const trace = (await simulation.run('--kind', 'around', '--seed', '7', '--trace')).split('\n').slice(0, -2);
  expect(trace.length).toBeGreaterThan(200);
  expect(
    (await simulation.run('--kind', 'around', '--seed', '7', '--trace')).split('\n').slice(0, -2),
  ).toEqual(trace);
});
