import { join } from 'node:path';

import { FakeClock, KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { Scope } from '../../src/core/scope.js';
import { Ticker } from '../../src/core/ticker.js';
import { CheckLoop, type Checker } from '../../src/watch/check-loop.js';
import { openScene } from '../support/open-scene.js';

test.each([
  ['resync', 'fs'],
  ['fs', 'resync'],
])('requests by %s and by %s in one turn lead to one check, which is by the hint', async (...causes) => {
  const checks: string[] = [];
  const checker: Checker<string> = {
    checkBecause(cause) {
      checks.push(cause);
      return Promise.resolve();
    },
    resyncAtOnce: () => false,
  };
  const loop = new CheckLoop(checker, new Scope());
  for (const cause of causes) loop.request(cause);
  await loop.idle();
  expect(checks).toEqual(['fs']);
});

test.each([
  { what: 'a key', paths: ['key'] },
  { what: 'a volume', paths: ['.'] },
  { what: 'a group', paths: ['key', 'second'] },
])('$what that is changed in the turn of a resync is reported because of its event', async ({ paths }) => {
  const clock = new FakeClock();
  const scene = openScene('fs');
  const volume = new KubeletVolume(join(scene.root, 'volume'));
  volume.publish({ key: '0', second: '0' });
  const targets = paths.map((path) => join(volume.directory, path));
  const options = { clock, resyncIntervalMs: 5_000, persistent: false };

  // Ticks before the watcher, so this comes right before the check of the resync.
  let version = 0;
  const publish = () => volume.publish({ key: `${++version}`, second: `${version}` });
  const publisher = { onTick: () => void setImmediate(publish) };
  const ticker = { clock, intervalMs: options.resyncIntervalMs, persistent: options.persistent };
  Ticker.start(publisher, ticker);
  await scene.watch(targets.length === 1 ? targets.join() : targets, options);
  for (let round = 0; round < 20; round += 1) await clock.advance(options.resyncIntervalMs);
  Ticker.stop(publisher, ticker);
  await scene.watcher.idle();

  expect(scene.causes).toEqual(['start', ...Array.from({ length: 20 }, () => 'fs')]);
  expect(scene.watcher.status()).toMatchObject({ changes: 21, resyncs: 0 });
});
