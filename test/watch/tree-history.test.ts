/** What a tree shows depends on the disk alone, not on what was there before or on the order in which it was seen. */
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';

import type { ResilientWatcherOptions } from 'resilient-watcher';
import { expect, test } from 'vitest';
import { ScriptedScene } from '../support/scripted-scene.js';

/** The tree is `root`, with the files `a` and `d/e/a`. */
async function openTree(options: ResilientWatcherOptions = {}): Promise<ScriptedScene> {
  const scene = new ScriptedScene();
  mkdirSync(scene.at('d/e'), { recursive: true });
  for (const key of ['a', 'd/e/a']) writeFileSync(scene.at(key), key);
  await scene.watch(scene.root, { recursive: true, ...options });
  return scene;
}

const keysOf = ({ files }: { readonly files: ReadonlyMap<string, unknown> }): string[] =>
  [...files.keys()].sort();

/** These are the files, for the watcher and for one that remembers nothing. */
async function shows({ watcher }: ScriptedScene, keys: readonly string[]): Promise<void> {
  expect(keysOf(await watcher.snapshot())).toEqual(keys);
  expect(watcher.current && keysOf(watcher.current)).toEqual(keys);
}

test('the files of a volume are gone when its link leads to a file', async () => {
  const scene = await openTree();
  scene.volume.publish({ key: '1' });
  await scene.settle();
  await shows(scene, ['a', 'd/e/a', 'volume/key']);
  writeFileSync(scene.at('volume/file'), 'no directory');
  symlinkSync('file', scene.at('volume/next'));
  renameSync(scene.at('volume/next'), scene.at('volume/..data'));
  await scene.settle();
  await shows(scene, ['a', 'd/e/a']);
});
