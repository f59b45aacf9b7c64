/** What is gone waits for `missingGraceMs` if it may come back, and not if it is known to be over. */
import { appendFileSync, mkdirSync, rmdirSync, rmSync, symlinkSync, unlinkSync } from 'node:fs';

import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { fsWith } from '../support/intercepted-fs.js';
import type { SceneOptions } from '../support/scene.js';
import { ScriptedScene } from '../support/scripted-scene.js';

const GRACE = { settleMs: 50, missingGraceMs: 500 };

test.each(['a directory', 'a volume'])(
  'a file that is not in what a link leads to from now on is reported as removed at once: %s',
  async (what) => {
    const scene = new ScriptedScene();
    scene.writeOld('before', ['a', 'b']);
    if (what === 'a directory') scene.writeOld('after', ['a']);
    else new KubeletVolume(scene.at('after')).publish({ a: 'after' });
    scene.relink('current', 'before');
    await scene.watch(scene.at('current'), GRACE);
    scene.relink('current', 'after');
    await scene.hint();
    expect(scene.reported).toEqual(['a=before b=before', 'a=after']);
  },
);

test('a target that is missing, and not in a gap, is reported by start() without its grace', async () => {
  const scene = new ScriptedScene();
  const before = scene.clock.monotonic();
  await scene.watch(scene.at('none'), { ...GRACE, missingGraceMs: 60_000 });
  expect(scene.watcher.current?.kind).toBe('missing');
  expect(scene.clock.monotonic() - before).toBeLessThan(60_000);
});

test('a link of a group into a volume that is made again within missingGraceMs is not reported as removed', async () => {
  const scene = new ScriptedScene();
  scene.volume.publish({ a: '1', b: '1' });
  mkdirSync(scene.at('links'));
  for (const name of ['a', 'b']) symlinkSync(`../volume/${name}`, scene.at(`links/${name}`));
  await scene.watch([scene.at('links/a'), scene.at('links/b')], GRACE);
  unlinkSync(scene.at('links/b'));
  await scene.hint();
  await scene.pass(400);
  symlinkSync('../volume/b', scene.at('links/b'));
  await scene.settle();
  expect(scene.reported).toEqual(['a=1 b=1']);
});

test.each(['a directory', 'a group', 'a link'])(
  'a file whose volume was swapped to a revision without it waits no longer when the volume is tidied up: %s',
  async (what) => {
    const scene = new ScriptedScene();
    const { volume } = scene;
    volume.publish({ a: '1', b: '1' });
    scene.writeOld('links', ['c']);
    symlinkSync('../volume/b', scene.at('links/b'));
    const links = ['links/b', 'links/c'].map((path) => scene.at(path));
    const target = { 'a directory': scene.at('links'), 'a group': links, 'a link': scene.at('links/b') }[
      what
    ];
    await scene.watch(target ?? '', GRACE);
    volume.publish({ a: '2' });
    await scene.hint();
    await scene.pass(400);
    mkdirSync(volume.path('..old'));
    await scene.pass(99);
    expect(scene.changes).toHaveLength(1);
    await scene.pass(2);
    expect(scene.changes.at(-1)?.removed).toHaveLength(1);
  },
);

test('a key without a link is reported as missing although its volume is swapped again', async () => {
  const scene = new ScriptedScene();
  const { volume } = scene;
  volume.publish({ a: '1', b: '1' });
  await scene.watch(volume.path('b'), GRACE);
  volume.publish({ a: '2' });
  await scene.hint();
  await scene.pass(400);
  volume.publish({ a: '3' });
  await scene.pass(101);
  expect(scene.changes.map(({ current }) => current.kind)).toEqual(['file', 'missing']);
});

test('the loss of what a link led to is reported although the volume that it has left is swapped', async () => {
  const scene = new ScriptedScene();
  scene.volume.publish({ a: '1' });
  scene.relink('current', 'volume');
  await scene.watch(scene.at('current/a'), GRACE);
  mkdirSync(scene.at('empty'));
  scene.relink('current', 'empty');
  await scene.hint();
  await scene.pass(400);
  scene.volume.publish({ a: '2' });
  await scene.pass(101);
  expect(scene.changes.map(({ current }) => current.kind)).toEqual(['file', 'missing']);
});

test('the loss of what a link leads to is reported while others write into its directory', async () => {
  const scene = new ScriptedScene();
  scene.writeOld('files', ['a']);
  scene.relink('link', 'files/a');
  await scene.watch(scene.at('link'), GRACE);
  unlinkSync(scene.at('files/a'));
  await scene.hint();
  for (let count = 0; count < 5; count += 1) {
    mkdirSync(scene.at(`files/${count}`));
    await scene.pass(101);
  }
  expect(scene.changes.map(({ current }) => current.kind)).toEqual(['file', 'missing']);
});

test('an empty directory that is made again within missingGraceMs is not reported as missing', async () => {
  const scene = new ScriptedScene();
  mkdirSync(scene.at('d'));
  await scene.watch(scene.at('d'), GRACE);
  rmdirSync(scene.at('d'));
  await scene.hint();
  await scene.pass(400);
  mkdirSync(scene.at('d'));
  await scene.settle();
  expect(scene.changes.map(({ current }) => current.kind)).toEqual(['directory']);
});

test('a directory that appears is told with the first of its files, or empty', async () => {
  const scene = new ScriptedScene();
  await scene.watch(scene.at('d'), GRACE);
  mkdirSync(scene.at('d'));
  for (let count = 0; count < 3; count += 1) {
    appendFileSync(scene.at('d/a'), 'more');
    await scene.hint();
    await scene.pass(40);
    expect(scene.reported).toEqual([]);
  }
  await scene.settle();
  expect(scene.reported).toEqual(['a=moremoremore']);
  rmSync(scene.at('d'), { recursive: true });
  await scene.settle();
  mkdirSync(scene.at('d'));
  await scene.settle();
  expect(scene.changes.map(({ current }) => current.kind).slice(-2)).toEqual(['missing', 'directory']);
});

test.each([['volume'], ['volume/a'], ['none', 'volume/a']])(
  'a start in the gap of a swap waits for what is published: %s %s',
  async (...target) => {
    const scene = new ScriptedScene();
    const { revision } = scene.volume.publish({ a: '1' });
    const data = scene.volume.path('..data');
    unlinkSync(data);
    scene.clock.schedule(() => symlinkSync(revision, data), 100);
    const [first = '', ...others] = target.map((path) => scene.at(path));
    await scene.watch(others.length > 0 ? [first, ...others] : first, GRACE);
    expect(scene.watcher.current?.kind).not.toBe('missing');
  },
);

test.each<[string, readonly string[], SceneOptions?]>([
  ['a group', ['d/a', 'd/key']],
  ['a directory', ['d']],
  ['a tree', ['d'], { recursive: true }],
])(
  '%s: whichever call a key is removed before, its loss is told with the other keys of that revision',
  async (_, names, options) => {
    for (let at = 1, isReached = true; isReached; at += 1) {
      const scene = new ScriptedScene();
      const volume = new KubeletVolume(scene.at('v'));
      volume.publish({ a: 'before', key: 'before' });
      mkdirSync(scene.at('d'));
      for (const name of ['a', 'key']) symlinkSync(`../v/${name}`, scene.at(`d/${name}`));
      let calls = -Infinity;
      const fs = fsWith({
        each: () => {
          if ((calls += 1) === at) volume.publish({ a: 'after' });
        },
      });
      const [path = '', ...others] = names.map((name) => scene.at(name));
      const target = others.length > 0 ? [path, ...others] : path;
      await scene.watch(target, { fs, missingGraceMs: 0, ...options });
      calls = 0;
      await scene.hint(scene.at('v/key'));
      isReached = calls >= at;
      calls = -Infinity;
      await scene.settle();
      const reported = isReached ? ['a=before key=before', 'a=after'] : ['a=before key=before'];
      expect(scene.reported, `at call ${at}`).toEqual(reported);
      await scene.watcher.close();
    }
  },
);

test('links into a volume of a tree are told with the loss of all of its keys', async () => {
  const scene = new ScriptedScene();
  mkdirSync(scene.at('tree'));
  const volume = new KubeletVolume(scene.at('tree/v'));
  volume.publish({ a: 'before' });
  symlinkSync('v/a', scene.at('tree/link'));
  await scene.watch(scene.at('tree'), { recursive: true, missingGraceMs: 0 });
  volume.publish({});
  await scene.hint(scene.at('tree/v/..data_tmp'));
  await scene.settle();
  expect(scene.reported).toEqual(['link=before v/a=before', '']);
});

test('a link to a directory in a volume is told with the loss of all keys there', async () => {
  const scene = new ScriptedScene();
  const volume = new KubeletVolume(scene.at('v'));
  volume.publish({ a: 'before', 'certs/key': 'before' });
  mkdirSync(scene.at('tree'));
  for (const name of ['a', 'certs']) symlinkSync(`../v/${name}`, scene.at(`tree/${name}`));
  await scene.watch(scene.at('tree'), { recursive: { followLinks: true }, missingGraceMs: 0 });
  volume.publish({});
  await scene.hint(scene.at('v/certs'));
  await scene.settle();
  expect(scene.reported).toEqual(['a=before certs/key=before', '']);
});
