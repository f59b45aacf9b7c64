/** The times of a file come from the clock of its file system, which may be that of a server, or may have been set. */
import { closeSync, openSync, utimesSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';

import { ResilientWatcher } from 'resilient-watcher';
import { FakeClock } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { timePasses } from '../support/scripted-scene.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const HOUR_MS = 3_600_000;

function watch(path: string, clock: FakeClock): { watcher: ResilientWatcher; reported: string[] } {
  const watcher = new ResilientWatcher(path, { clock, resyncIntervalMs: 0, backend: 'poll' });
  onTestFinished(() => watcher.close());
  const reported: string[] = [];
  watcher.on('change', ({ current }) => reported.push(String(current.content)));
  return { watcher, reported };
}

test.each<[string, number]>([
  ['the same as ours', 0],
  ['200 ms behind', 200],
  ['an hour behind', HOUR_MS],
  ['3 s ahead', -3_000],
  ['an hour ahead', -HOUR_MS],
])(
  'a file that is being written at the start is reported when it is complete, if its clock is %s',
  async (_, byMs) => {
    const path = join(temporaryDirectory(), 'file');
    const fd = openSync(path, 'w');
    writeSync(fd, 'half');
    const clock = new FakeClock(Date.now() + byMs);
    const { watcher, reported } = watch(path, clock);
    const started = watcher.start();
    await clock.advance(20);
    writeSync(fd, ' and the rest');
    closeSync(fd);
    await clock.advance(2_000);
    await started;
    expect(reported).toEqual(['half and the rest']);
  },
);

test.each<[string, number, number, number]>([
  ['was last read long after it was last written', -1, -HOUR_MS, 0],
  ['was written days ago', -100 * HOUR_MS, -100 * HOUR_MS, 0],
  ['was written days from now, by a clock that was never set', 100 * HOUR_MS, 100 * HOUR_MS, 0],
])('a file that %s is reported without a wait', async (_, readMs, writtenMs, byMs) => {
  const path = join(temporaryDirectory(), 'file');
  writeFileSync(path, 'whole');
  const now = Date.now();
  utimesSync(path, (now + readMs) / 1_000, (now + writtenMs) / 1_000);
  const { watcher, reported } = watch(path, new FakeClock(now + byMs));
  await watcher.start();
  expect(reported).toEqual(['whole']);
});

test('a file that is added and removed again and again is reported although it was written a moment ago', async () => {
  const directory = temporaryDirectory();
  const [path, extra] = [join(directory, 'file'), join(directory, 'extra')];
  for (const each of [path, extra]) writeFileSync(each, 'text');
  const clock = new FakeClock(Date.now());
  const watcher = new ResilientWatcher([path], { clock, resyncIntervalMs: 0 });
  onTestFinished(() => watcher.close());
  await timePasses(clock, watcher.start());
  let added = 0;
  watcher.on('change', (change) => (added += change.added.length));
  for (let round = 0; round < 10; round += 1) {
    void (round % 2 === 0 ? watcher.add(extra) : watcher.remove(extra));
    await clock.advance(20);
  }
  expect(added).toBeGreaterThan(0);
});
