/** How long the files that belong together wait for each other. */
import { mkdirSync, symlinkSync, unlinkSync } from 'node:fs';

import { expect, test } from 'vitest';

import { ScriptedScene } from '../support/scripted-scene.js';

const GRACE = { settleMs: 50, missingGraceMs: 500 };

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
  scene.writeOld('before', ['a']);
  scene.volume.publish({ b: '1' });
  await scene.watch([scene.at('before/a'), scene.volume.path('b')], GRACE);
  scene.volume.publish({ b: '2' });
  await scene.watcher.check();
  expect(scene.reported).toEqual(['a=before b=1', 'a=before b=2']);
});

test('check() waits for the other links of a group once one leads elsewhere, for groupSettleMs at most', async () => {
  const scene = new ScriptedScene();
  scene.writeOld('before', ['a', 'b']);
  scene.writeOld('after', ['a', 'b']);
  for (const name of ['a', 'b']) scene.relink(name, `before/${name}`);
  await scene.watch(
    ['a', 'b'].map((name) => scene.at(name)),
    { ...GRACE, groupSettleMs: 200 },
  );
  for (const [delayMs, expected] of [
    [190, 'a=after b=after'],
    [200, 'a=before b=after'],
  ] as const) {
    const target = expected.includes('before') ? 'before' : 'after';
    scene.relink('a', `${target}/a`);
    let isChecked = false;
    const checked = scene.watcher.check().then(() => (isChecked = true));
    await scene.pass(190);
    expect([isChecked, scene.reported.includes(expected)]).toEqual([false, false]);
    if (delayMs < 200) scene.relink('b', `${target}/b`);
    await scene.hint();
    await scene.pass(delayMs < 200 ? 0 : 20);
    await checked;
    expect(scene.reported.at(-1)).toBe(expected);
  }
});
