/** What is special about a report of many files; everything else is tested through a watcher. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { nodeFileSystem } from 'resilient-watcher';
import { FakeClock } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { runSync, type Effects } from '../../../src/fs/effects.js';
import type { Found, Observation } from '../../../src/fs/observation.js';
import { PathTarget } from '../../../src/fs/targets/path-target.js';
import type { Change } from '../../../src/watch/change.js';
import { InPlaceWrites } from '../../../src/watch/report/in-place-writes.js';
import { Reporter } from '../../../src/watch/report/reporter.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';

const FILES = 5_000;
/** No portion of the work is about more files than this. */
const AT_ONCE = 1_000;

function pausesOf(effects: Effects<void>): number {
  let pauses = 0;
  while (!effects.next().done) pauses += 1;
  return pauses;
}

test('whatever is compared, awaited or left out of a report of many files is handled in portions', async () => {
  const path = join(temporaryDirectory(), 'directory');
  mkdirSync(path);
  const limits = { maxContentBytes: 1_000, maxTotalBytes: 1_000_000, maxFiles: 2 * FILES };
  const target = new PathTarget(path, limits);
  const observe = (): Found => {
    target.touch();
    const seen: Observation = runSync(target.observe(), nodeFileSystem.sync);
    if (seen.kind !== 'found') throw new Error(`The directory is ${seen.kind}`);
    return seen;
  };
  const changes: Change[] = [];
  const clock = new FakeClock();
  const settings = { clock, persistent: false, groupSettleMs: 0, missingGraceMs: 100 };
  const reporter = new Reporter(
    path,
    { ...settings, settleMs: 50, maxSettleMs: 10_000 },
    {
      report(event) {
        if (event.name === 'change') changes.push(event.payload);
      },
      checkAgain: () => undefined,
    },
    new InPlaceWrites(),
  );
  pausesOf(reporter.consider(observe(), 'start'));
  changes.splice(0);

  for (let index = 0; index < FILES; index += 1) writeFileSync(join(path, `${index}`), 'old');
  expect(pausesOf(reporter.consider(observe(), 'fs'))).toBeGreaterThanOrEqual(FILES / AT_ONCE);
  expect(changes.splice(0)).toEqual([]);
  await clock.advance(200);
  pausesOf(reporter.consider(observe(), 'fs'));
  expect(changes.splice(0).map(({ added }) => added.length)).toEqual([FILES]);

  // Half of them are due now, the others later: the report is of the one half, without the other.
  for (let index = 0; index < FILES; index += 2) writeFileSync(join(path, `${index}`), 'new');
  pausesOf(reporter.consider(observe(), 'fs'));
  await clock.advance(49);
  for (let index = 1; index < FILES; index += 2) writeFileSync(join(path, `${index}`), 'new');
  pausesOf(reporter.consider(observe(), 'fs'));
  await clock.advance(60);
  for (let index = 1; index < FILES; index += 2) writeFileSync(join(path, `${index}`), 'newer');
  expect(pausesOf(reporter.consider(observe(), 'fs'))).toBeGreaterThanOrEqual((3 * FILES) / AT_ONCE);
  reporter.close();
  expect(changes.map(({ changed }) => changed.length)).toEqual([FILES / 2]);
  const { files } = changes[0]?.current ?? {};
  expect([String(files?.get('0')?.content), String(files?.get('1')?.content)]).toEqual(['new', 'old']);
});
