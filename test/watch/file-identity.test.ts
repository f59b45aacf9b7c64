/** A file or directory in the place of another one that has the same inode number. */
import { mkdirSync, renameSync, utimesSync, writeFileSync, type BigIntStats } from 'node:fs';

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
