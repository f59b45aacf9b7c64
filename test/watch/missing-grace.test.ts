/** How long a difference waits: what could still be undone waits, and what is known to be over does not. */
import {
  mkdirSync,
  renameSync,
  rmdirSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';

import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { errno, faultyFileSystem } from '../support/faulty-file-system.js';
import { ScriptedScene } from '../support/scripted-scene.js';

const GRACE = { settleMs: 50, missingGraceMs: 500 };

/** Files that were written an hour ago. */
function writeOld(scene: ScriptedScene, directory: string, names: readonly string[]): void {
  mkdirSync(scene.at(directory));
  for (const name of names) {
    writeFileSync(scene.at(`${directory}/${name}`), directory);
    utimesSync(scene.at(`${directory}/${name}`), Date.now() / 1e3 - 3_600, Date.now() / 1e3 - 3_600);
  }
}

function relink(scene: ScriptedScene, name: string, target: string): void {
  symlinkSync(target, scene.at('next'));
  renameSync(scene.at('next'), scene.at(name));
}

test.each(['a directory', 'a volume'])(
  'a file that is not in what a link leads to from now on is reported as removed at once: %s',
  async (what) => {
    const scene = new ScriptedScene();
    writeOld(scene, 'before', ['a', 'b']);
    if (what === 'a directory') writeOld(scene, 'after', ['a']);
    else new KubeletVolume(scene.at('after')).publish({ a: 'after' });
    relink(scene, 'current', 'before');
    await scene.watch(scene.at('current'), GRACE);
    relink(scene, 'current', 'after');
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

test.each(['volume', 'volume/a'])(
  'a start in the gap of a swap waits for what is published: %s',
  async (target) => {
    const scene = new ScriptedScene();
    const { revision } = scene.volume.publish({ a: '1' });
    const data = scene.volume.path('..data');
    unlinkSync(data);
    scene.clock.schedule(() => symlinkSync(revision, data), 100);
    await scene.watch(scene.at(target), GRACE);
    expect(scene.watcher.current?.kind).not.toBe('missing');
  },
);

test.each([
  ['a group waits groupSettleMs', 200],
  ['a directory waits settleMs', 50],
])('links wait for a key that is published and not linked yet, but not for ever: %s', async (what, ms) => {
  const scene = new ScriptedScene();
  const { volume } = scene;
  volume.publish({ a: '1', b: '1' });
  mkdirSync(scene.at('links'));
  for (const name of ['a', 'b']) symlinkSync(`../volume/${name}`, scene.at(`links/${name}`));
  const members = ['links/a', 'links/b'].map((path) => scene.at(path));
  await scene.watch(what.startsWith('a group') ? members : scene.at('links'), GRACE);
  volume.publish({ a: '2', b: '2' });
  unlinkSync(volume.path('b'));
  await scene.hint();
  await scene.pass(ms - 10);
  expect(scene.reported).toHaveLength(1);
  await scene.pass(20);
  expect(scene.changes.at(-1)).toMatchObject({ changed: [expect.stringMatching(/a$/)] });
});

test('a key in a group with a plain file is reported by check() as soon as it is published', async () => {
  const scene = new ScriptedScene();
  writeOld(scene, 'before', ['a']);
  scene.volume.publish({ b: '1' });
  await scene.watch([scene.at('before/a'), scene.volume.path('b')], GRACE);
  scene.volume.publish({ b: '2' });
  await scene.watcher.check();
  expect(scene.reported).toEqual(['a=before b=1', 'a=before b=2']);
});

test('check() waits for the other links of a group once one leads elsewhere, for groupSettleMs at most', async () => {
  const scene = new ScriptedScene();
  writeOld(scene, 'before', ['a', 'b']);
  writeOld(scene, 'after', ['a', 'b']);
  for (const name of ['a', 'b']) relink(scene, name, `before/${name}`);
  await scene.watch(
    ['a', 'b'].map((name) => scene.at(name)),
    { ...GRACE, groupSettleMs: 200 },
  );
  for (const [delayMs, expected] of [
    [190, 'a=after b=after'],
    [200, 'a=before b=after'],
  ] as const) {
    const target = expected.includes('before') ? 'before' : 'after';
    relink(scene, 'a', `${target}/a`);
    let isChecked = false;
    const checked = scene.watcher.check().then(() => (isChecked = true));
    await scene.pass(190);
    expect([isChecked, scene.reported.includes(expected)]).toEqual([false, false]);
    if (delayMs < 200) relink(scene, 'b', `${target}/b`);
    await scene.hint();
    await scene.pass(delayMs < 200 ? 0 : 20);
    await checked;
    expect(scene.reported.at(-1)).toBe(expected);
  }
});

test('another reason why a target cannot be read is told, too, and `readable` counts from the first one', async () => {
  const scene = new ScriptedScene();
  writeOld(scene, 'd', ['a']);
  let code: string | undefined;
  const fs = faultyFileSystem((_, [path]) => {
    if (code !== undefined && path === scene.at('d/a')) throw errno(code, scene.at('d/a'));
  });
  await scene.watch(scene.at('d/a'), { ...GRACE, fs });
  const at = scene.clock.monotonic();
  for (code of ['EACCES', 'EIO', undefined]) await scene.settle();
  expect(scene.errors).toMatchObject([{ code: 'ERR_TARGET_ACCESS' }, { code: 'ERR_TARGET_IO' }]);
  expect(scene.events.at(-1)).toMatch(/^readable after /);
  const unreadableMs = Number(scene.events.at(-1)?.split(' ').at(-1));
  expect(unreadableMs).toBeGreaterThan(2_000);
  expect(unreadableMs).toBeLessThanOrEqual(scene.clock.monotonic() - at);
});
