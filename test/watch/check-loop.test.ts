import { join } from 'node:path';

import { FakeClock, KubeletVolume } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { Scope } from '../../src/core/scope.js';
import { Ticker } from '../../src/core/ticker.js';
import { operationChannel } from '../../src/core/telemetry.js';
import { CheckLoop, type Checker } from '../../src/watch/check-loop.js';
import { nextTurn } from '../../src/core/event-loop.js';
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

test('a check that is requested twice in a turn, and during which one is requested, is not overtaken', async () => {
  let underWay = 0;
  const most: number[] = [];
  const slow: Checker<string> = {
    checkBecause: async () => {
      underWay += 1;
      most.push(underWay);
      if (most.length === 1) second.request('fs');
      for (let turns = 0; turns < 3; turns += 1) await nextTurn();
      underWay -= 1;
    },
    resyncAtOnce: () => false,
  };
  const second = new CheckLoop(slow, new Scope());
  // Its check, as a listener may, asks for one of the other, which comes right after it in the same turn.
  const first = new CheckLoop<string>(
    {
      ...slow,
      checkBecause: () => {
        second.request('fs');
        return Promise.resolve();
      },
    },
    new Scope(),
  );
  first.request('fs');
  second.request('fs');
  await second.idle();
  expect(most).toEqual([1, 1]);
  expect(second.state).toBe('idle');
});

test.each(['finds nothing', 'finds something'])(
  'a check that is asked for in a call of a resync that %s begins after it',
  async (when) => {
    const checks: string[] = [];
    const ended: string[] = [];
    const checker: Checker<string> = {
      checkBecause: (cause) => Promise.resolve(void checks.push(cause)),
      resyncAtOnce: () => {
        void loop.checkNow('check').then(() => ended.push(`check after ${checks.join()}`));
        void loop.idle().then(() => ended.push('idle'));
        return when.endsWith('nothing');
      },
    };
    const loop = new CheckLoop(checker, new Scope());
    loop.request('resync');
    for (let turns = 0; turns < 5; turns += 1) await nextTurn();
    expect(ended).toEqual([expect.stringMatching(/^check after (resync,)?check$/), 'idle']);
  },
);

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
  const clock = new FakeClock();
  const scene = openScene('fs');
  const volume = new KubeletVolume(join(scene.root, 'volume'));
  volume.publish({ key: '0', second: '0' });
  const targets = paths.map((path) => join(volume.directory, path));
  const options = { clock, resyncIntervalMs: 5_000, persistent: false };

  // Ticks before the watcher, so this comes right before the check of the resync, or in the turn after that.
  let version = 0;
  let published = Promise.resolve();
  const publisher = {
    onTick: () => {
      const turns = version % 2;
      version += 1;
      published = nextTurn()
        .then(() => (turns > 0 ? nextTurn() : undefined))
        .then(() => {
          volume.publish({ key: `${version}`, second: `${version}` });
        });
    },
  };
  const ticker = { clock, intervalMs: options.resyncIntervalMs, persistent: options.persistent };
  Ticker.start(publisher, ticker);
  await scene.watch(targets.length === 1 ? targets.join() : targets, options);
  for (let round = 1; round <= 20; round += 1) {
    await clock.advance(options.resyncIntervalMs);
    await published;
    await scene.until(() => scene.changes.length > round);
  }
  Ticker.stop(publisher, ticker);
  await scene.watcher.idle();

  expect(scene.causes).toEqual(['start', ...Array.from({ length: 20 }, () => 'fs')]);
  expect(scene.watcher.status()).toMatchObject({ changes: 21, resyncs: 0 });
});
