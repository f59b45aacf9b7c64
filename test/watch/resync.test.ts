import { mkdirSync, renameSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { FakeClock, KubeletVolume } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { nextTurn } from '../../src/core/scheduling/event-loop.js';
import { operationChannel } from '../../src/core/telemetry/telemetry.js';
import { tickEvery } from '../../src/watch/ticker.js';
import { fsWith } from '../support/intercepted-fs.js';
import { openScene } from '../support/open-scene.js';
import { ScriptedScene } from '../support/scripted-scene.js';

test.each([
  { what: 'a key', paths: ['key'] },
  { what: 'a volume', paths: ['.'] },
  { what: 'a group', paths: ['key', 'second'] },
  { what: 'a key whose checks somebody observes', paths: ['key'], isObserved: true },
  { what: 'a volume whose checks somebody observes', paths: ['.'], isObserved: true },
])('$what that is changed in the turn of a resync is reported because of its event', async (given) => {
  const { paths, isObserved = false } = given;
  const observer = { asyncEnd: () => {} };
  if (isObserved) {
    operationChannel('check').subscribe(observer as never);
    onTestFinished(() => {
      operationChannel('check').unsubscribe(observer as never);
    });
  }
  const clock = new FakeClock(Date.now());
  const scene = openScene('fs');
  const volume = new KubeletVolume(join(scene.root, 'volume'));
  volume.publish({ key: '0', second: '0' });
  const targets = paths.map((path) => join(volume.directory, path));
  const options = { clock, resyncIntervalMs: 5_000, persistent: false };

  // Ticks before the watcher, so this comes right before the check of the resync, or in the turn after that.
  let version = 0;
  let published = Promise.resolve();
  const publish = () => {
    const turns = version % 2;
    version += 1;
    published = nextTurn()
      .then(() => (turns > 0 ? nextTurn() : undefined))
      .then(() => {
        volume.publish({ key: `${version}`, second: `${version}` });
      });
  };
  const ticker = { clock, intervalMs: options.resyncIntervalMs, persistent: options.persistent };
  const stop = tickEvery(ticker, publish);
  await scene.watch(targets.length === 1 ? targets.join() : targets, options);
  for (let round = 1; round <= 20; round += 1) {
    await clock.advance(options.resyncIntervalMs);
    await published;
    await scene.until(() => scene.changes.length > round);
  }
  stop();
  await scene.watcher.idle();

  expect(scene.causes).toEqual(['start', ...Array.from({ length: 20 }, () => 'fs')]);
  expect(scene.watcher.status()).toMatchObject({ changes: 21, resyncs: 0 });
});

test('what appears while a resync looks again is reported because of its event', async () => {
  const clock = new FakeClock(Date.now());
  const scene = openScene('fs');
  const volume = new KubeletVolume(join(scene.root, 'volume'));
  volume.publish({ key: '1' });
  const next = join(volume.directory, '..next');
  mkdirSync(next);
  writeFileSync(join(next, 'key'), '1');
  writeFileSync(join(next, 'other'), '2');
  await scene.watch(volume.directory, { clock, resyncIntervalMs: 5_000, persistent: false });
  const link = join(volume.directory, '..data');
  unlinkSync(link);
  await scene.watcher.check();

  let looks = 0;
  const observer = {
    start: ({ cause }: { cause: string }) => {
      if (cause !== 'resync') return;
      looks += 1;
      if (looks === 2) symlinkSync('..next', link);
    },
  };
  operationChannel('check').subscribe(observer as never);
  onTestFinished(() => {
    operationChannel('check').unsubscribe(observer as never);
  });
  await clock.advance(5_000);
  await scene.until(() => scene.changes.length > 1);
  expect(scene.causes).toEqual(['start', 'fs']);
});

test('a file that each look of a resync finds changed is reported, without any event', async () => {
  const scene = new ScriptedScene();
  let version = 0;
  const fs = fsWith({
    each: ({ name, args: [path] }) => {
      if (name !== 'open' || path !== scene.file || version === 0) return;
      version += 1;
      writeFileSync(scene.file, `${version}`);
    },
  });
  writeFileSync(scene.file, '0');
  await scene.watch(scene.file, { fs, resyncIntervalMs: 5_000, maxSettleMs: 1_000 });
  version = 1;
  await scene.clock.advance(5_000);
  await scene.pass(2_000, () => scene.changes.length > 1);
  expect(scene.causes).toEqual(['start', 'resync']);
});

test('a check that is asked for while a resync looks still checks everything', async () => {
  const scene = new ScriptedScene();
  // Larger than what a resync verifies.
  for (let number = 0; number < 1_200; number += 1) writeFileSync(scene.at(`f${number}`), 'old');
  const fs = fsWith({}, 'remote');
  const watcher = scene.create(scene.root, { fs, resyncIntervalMs: 5_000 });
  scene.record();
  await watcher.start();
  scene.takeChanges();
  for (const name of ['f0', 'f700']) {
    writeFileSync(scene.at('next'), 'new');
    utimesSync(scene.at('next'), 1, 1);
    renameSync(scene.at('next'), scene.at(name));
  }
  const { checks } = watcher.status();
  await scene.clock.advance(5_000);
  expect(watcher.status().checks).toBe(checks);
  await watcher.check();
  expect(scene.takeChanges().map(({ keys }) => keys)).toEqual(['+ ~f0,f700 -']);
});
