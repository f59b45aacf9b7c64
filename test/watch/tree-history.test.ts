/** What a tree shows depends on the disk alone, not on what was there before or on the order in which it was seen. */
import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';

import type { ResilientWatcherOptions } from 'resilient-watcher';
import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { errno, faultyFileSystem } from '../support/faulty-file-system.js';
import { slowFs } from '../support/intercepted-fs.js';
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

test('a file that could not be looked up is readable as soon as it can be', async () => {
  let isBroken = false;
  const fs = faultyFileSystem((name, [path]) => {
    if (isBroken && name === 'lstat' && String(path).endsWith('/d/e/a')) throw errno('EIO', String(path));
  });
  const scene = await openTree({ fs });
  isBroken = true;
  await scene.settle();
  expect(scene.watcher.status().target).toBe('unreadable');
  isBroken = false;
  await scene.settle();
  expect(scene.watcher.status().target).toBe('tree');
});

test('a directory is not listed after the one above it became a volume, of which only the keys are shown', async () => {
  const scene = await openTree({ fs: slowFs() });
  new KubeletVolume(scene.root).publish({ key: '1' });
  scene.backend.hint(scene.at('a'));
  // Both for the look that follows.
  scene.backend.hint(scene.at('d/e'));
  scene.backend.hint(scene.root);
  await scene.pass(1_000);
  await shows(scene, ['key']);
});

test('a file is not kept after the directory above it was found to be another one', async () => {
  const scene = await openTree({ fs: slowFs() });
  rmSync(scene.at('d'), { recursive: true });
  mkdirSync(scene.at('d/e'), { recursive: true });
  writeFileSync(scene.at('d/e/a'), 'beside the keys');
  new KubeletVolume(scene.at('d')).publish({ key: '1' });
  scene.backend.hint(scene.at('a'));
  // Both for the look that follows.
  scene.backend.hint(scene.at('d'));
  scene.backend.hint(scene.at('d/e/a'));
  await scene.pass(1_000);
  await shows(scene, ['a', 'd/key']);
});

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

test('a volume that became a plain directory shows its files, even if a revision was left there', async () => {
  const scene = await openTree();
  scene.volume.publish({ key: '1' });
  await scene.settle();
  unlinkSync(scene.at('volume/..data'));
  unlinkSync(scene.at('volume/key'));
  writeFileSync(scene.at('volume/key'), 'plain');
  await scene.settle();
  await shows(scene, ['a', 'd/e/a', 'volume/key']);
});

test('a link is followed once the directory that it leads to has no path of its own any more', async () => {
  const scene = await openTree({ recursive: { followLinks: true } });
  symlinkSync(scene.at('d/e'), scene.at('x'));
  await scene.settle();
  await shows(scene, ['a', 'd/e/a']);
  new KubeletVolume(scene.at('d')).publish({ key: '1' });
  scene.backend.hint(scene.at('d/..data'));
  await scene.pass(1_000);
  await shows(scene, ['a', 'd/key', 'x/a']);
});

test('a directory in place of a link belongs to the tree that a backend watches', async () => {
  const elsewhere = new ScriptedScene().root;
  const scene = await openTree({ recursive: { followLinks: true } });
  symlinkSync(elsewhere, scene.at('x'));
  await scene.settle();
  unlinkSync(scene.at('x'));
  for (const name of ['x', 'new']) mkdirSync(scene.at(name));
  // Another directory has changed, so that links are followed again.
  scene.backend.hint(scene.at('new'));
  await scene.settle();
  const found = scene.backend.directories.find(({ path }) => path === scene.at('x'));
  expect(found?.tree?.root).toBe(scene.root);
});

test('what leads nowhere between two calls, and is back, is listened to', async () => {
  let isGone = false;
  const elsewhere = new ScriptedScene().at('elsewhere');
  const fs = faultyFileSystem((name, [path]) => {
    if (!isGone || name !== 'readdir' || path !== elsewhere) return;
    isGone = false;
    rmSync(elsewhere, { recursive: true });
  });
  mkdirSync(elsewhere);
  writeFileSync(`${elsewhere}/file`, 'linked');
  const scene = await openTree({ recursive: { followLinks: true }, fs });
  isGone = true;
  symlinkSync(elsewhere, scene.at('x'));
  await scene.settle();
  expect(scene.watcher.status().watchedDirectories).toContain(elsewhere.slice(0, elsewhere.lastIndexOf('/')));
  mkdirSync(elsewhere);
  writeFileSync(`${elsewhere}/file`, 'linked');
  scene.backend.hint(elsewhere);
  await scene.pass(1_000);
  await shows(scene, ['a', 'd/e/a', 'x/file']);
});

test('what is removed while it is looked for is removed', async () => {
  const scene = await openTree({ fs: slowFs() });
  writeFileSync(scene.at('d/new'), 'new');
  scene.backend.hint(scene.at('d/new'));
  const removed = scene.watcher.remove('d/new');
  await scene.pass(1_000);
  await removed;
  await shows(scene, ['a', 'd/e/a']);
});

test.each([
  ['x', 'y'],
  ['y', 'x'],
])('an empty directory behind two links is listened to when one is removed: %s, %s', async (outer, inner) => {
  const elsewhere = new ScriptedScene();
  mkdirSync(elsewhere.at('deep'));
  const scene = await openTree({ recursive: { followLinks: true } });
  symlinkSync(elsewhere.root, scene.at(outer));
  symlinkSync(elsewhere.at('deep'), scene.at(inner));
  await scene.clock.advance(5_000);
  await scene.settle();
  unlinkSync(scene.at(inner));
  await scene.hint(scene.at(inner));
  expect(scene.watcher.status().watchedDirectories).toContain(elsewhere.at('deep'));
});
