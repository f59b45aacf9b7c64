import { FakeClock } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { RepeatedLines } from '../../src/telemetry/repeated-lines.js';

test('of a cause there is one line at once, then one a minute with the number of the others, and none while there are none', async () => {
  const clock = new FakeClock();
  const lines = new RepeatedLines(clock);
  const printed: (readonly [cause: string, more: number])[] = [];
  const say = (cause: string): void => lines.say(cause, (more) => printed.push([cause, more]));
  for (const cause of ['away', 'away', 'forbidden', 'away']) say(cause);
  expect(printed.splice(0)).toEqual([
    ['away', 0],
    ['forbidden', 0],
  ]);
  await clock.advance(60_000);
  expect(printed.splice(0)).toEqual([['away', 2]]);
  say('away');
  say('forbidden');
  expect(printed.splice(0)).toEqual([['forbidden', 0]]);
  await clock.advance(60_000);
  expect(printed.splice(0)).toEqual([['away', 1]]);
  await clock.advance(600_000);
  say('away');
  expect(printed.splice(0)).toEqual([['away', 0]]);
  say('away');
  lines.close();
  expect(printed).toEqual([['away', 1]]);
  expect(clock.pending).toBe(0);
});
