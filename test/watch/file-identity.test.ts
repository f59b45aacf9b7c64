/** Which file is at a path, and whether it is as it was: its inode, its links and its content. */
import {
  linkSync,
  mkdirSync,
  renameSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  type BigIntStats,
} from 'node:fs';

import { expect, test } from 'vitest';

import { fsWith, statsWith } from '../support/intercepted-fs.js';
import { ScriptedScene } from '../support/scripted-scene.js';

/** All files and directories have one inode number; only the birth time tells them apart. */
const oneNumber = (stat: BigIntStats): void => void Object.assign(stat, { birthtimeNs: stat.ino, ino: 1n });

test('a file that replaces one with the same inode number counts as another file', async () => {
  const scene = new ScriptedScene();
  writeFileSync(scene.file, 'old');
  await scene.watch(scene.file, { fs: fsWith(statsWith(oneNumber)) });
  await scene.reports('old');
  writeFileSync(scene.at('next'), 'new');
  utimesSync(scene.at('next'), 1, 1);
  renameSync(scene.at('next'), scene.file);
  await scene.hint();
  expect(scene.reported).toEqual(['old', 'new']);
});

test('a directory that replaces one with the same inode number is listened to', async () => {
  const scene = new ScriptedScene();
  mkdirSync(scene.at('d'));
  await scene.watch(scene.at('d/file'), { fs: fsWith(statsWith(oneNumber)) });
  const identity = (): string | undefined =>
    scene.backend.directories.find(({ path }) => path === scene.at('d'))?.identity;
  const before = identity();
  renameSync(scene.at('d'), scene.at('before'));
  mkdirSync(scene.at('d'));
  await scene.hint();
  expect(identity()).not.toBe(before);
});

test('a link that leads to another name of the same file says so', async () => {
  const scene = new ScriptedScene();
  writeFileSync(scene.at('a'), 'text');
  linkSync(scene.at('a'), scene.at('b'));
  symlinkSync('a', scene.at('link'));
  await scene.watch(scene.at('link'));
  // The inode is known for long enough to tell every change.
  await scene.pass(1_000);
  await scene.watcher.check();
  symlinkSync('b', scene.at('next'));
  renameSync(scene.at('next'), scene.at('link'));
  await scene.settle();
  expect(scene.watcher.current).toMatchObject({ realPath: scene.at('b') });
});

test('a file of which only the digest is kept is told when it changes within one tick', async () => {
  const scene = new ScriptedScene();
  mkdirSync(scene.at('d'));
  for (const name of ['a', 'b']) writeFileSync(scene.at(`d/${name}`), 'old');
  const stats = statsWith((stat) => {
    if (stat.isFile()) [stat.mtimeNs, stat.ctimeNs] = [1n, 1n];
  });
  await scene.watch(scene.at('d'), { fs: fsWith(stats), maxTotalBytes: 1 });
  scene.takeChanges();
  writeFileSync(scene.at('d/a'), 'new');
  await scene.settle();
  expect(scene.takeChanges().map(({ keys }) => keys)).toEqual(['+ ~a -']);
});
