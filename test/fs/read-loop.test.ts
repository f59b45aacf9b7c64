/** A program that reads again and again: everything else in its process goes on. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { AtomicVolume, readVolume, ResilientWatcher } from 'resilient-watcher';
import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';

/** So many reads take much longer than a timer of a millisecond. */
const MOST_READS = 20_000;

test.each<[string, (directory: string) => () => Promise<unknown>]>([
  ['readVolume()', (directory) => () => readVolume(directory)],
  [
    'snapshot()',
    (directory) => {
      const watcher = new ResilientWatcher(directory);
      return () => watcher.snapshot();
    },
  ],
  [
    'AtomicVolume.read()',
    (directory) => {
      const volume = new AtomicVolume(directory);
      return () => volume.read();
    },
  ],
])('timers fire while %s is awaited in a loop', async (_what, reader) => {
  const directory = join(temporaryDirectory(), 'volume');
  mkdirSync(directory);
  new KubeletVolume(directory).publish({ key: '1' });
  const read = reader(directory);
  const timer = { hasFired: false };
  setTimeout(() => (timer.hasFired = true), 1);
  for (let reads = 0; !timer.hasFired && reads < MOST_READS; reads += 1) await read();
  expect(timer.hasFired).toBe(true);
});

test('the time that may be taken is that of the process: several loops share it', async () => {
  const directory = join(temporaryDirectory(), 'volume');
  new KubeletVolume(directory).publish({ key: '1' });
  const timer = { hasFired: false };
  setTimeout(() => (timer.hasFired = true), 1);
  const loops = 20;
  const loop = async (): Promise<void> => {
    for (let reads = 0; !timer.hasFired && reads < MOST_READS / loops; reads += 1)
      await readVolume(directory);
  };
  await Promise.all(Array.from({ length: loops }, loop));
  expect(timer.hasFired).toBe(true);
});
