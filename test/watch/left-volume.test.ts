/** A key leaves its volume: its link becomes a plain file, which is written for a while. */
import { appendFileSync, mkdirSync, symlinkSync, unlinkSync } from 'node:fs';

import { expect, test } from 'vitest';

import type { SceneOptions } from '../support/scene.js';
import { ScriptedScene } from '../support/scripted-scene.js';

test.each<[string, string, SceneOptions?]>([
  ['a directory of links', 'links'],
  ['a tree around the volume', '.', { recursive: true }],
])('%s reports a volume whole after one of its keys has become a file', async (_, target, options) => {
  const scene = new ScriptedScene({ hints: 'poll' });
  const { volume } = scene;
  volume.publish({ a: '1', b: '1' });
  mkdirSync(scene.at('links'));
  for (const key of ['a', 'b']) symlinkSync(`../volume/${key}`, scene.at(`links/${key}`));
  await scene.watch(scene.at(target), { pollIntervalMs: 10, ...options });
  scene.takeChanges();
  const file = scene.at('links/a');
  unlinkSync(file);
  for (let count = 0; count < 20; count += 1) {
    appendFileSync(file, 'more');
    await scene.pass(20);
    if (count === 5) volume.publish({ a: '2', b: '2' });
  }
  await scene.pass(1_000);
  const published = scene.takeChanges().map(({ files }) => {
    const texts = Object.values(files).filter((text) => !text.includes('more'));
    return [...new Set(texts)];
  });
  for (const revisions of published) expect(revisions).toHaveLength(1);
  expect(published.at(-1)).toEqual(['2']);
});

test('a swap that waits for other files is told in no part when one of these is due', async () => {
  const scene = new ScriptedScene();
  const { volume } = scene;
  volume.publish({ a: 'same', b: 'old' });
  await scene.watch(scene.root, { recursive: true });
  scene.takeChanges();
  const revisions: number[] = [];
  scene.watcher.on('change', ({ current }) => {
    const own = [...current.files].filter(([key]) => key.startsWith('volume/'));
    revisions.push(new Set(own.map(([, { revision }]) => revision)).size);
  });
  appendFileSync(scene.at('done'), 'text');
  for (let count = 0; count < 6; count += 1) {
    appendFileSync(scene.at('busy'), 'more');
    await scene.hint();
    await scene.pass(20);
    if (count === 3) volume.publish({ a: 'same' });
  }
  await scene.pass(15);
  expect(scene.takeChanges().map(({ keys }) => keys)).toEqual(['+done ~ -', '+ ~ -volume/b']);
  expect(revisions).toEqual([1, 1]);
});
