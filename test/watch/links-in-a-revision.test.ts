/** A key of a volume that is a link, which may lead out of its revision. */
import { mkdirSync, renameSync, rmdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { errno } from '../support/errno.js';
import { fsWith, type Intervention } from '../support/intercepted-fs.js';
import type { SceneOptions } from '../support/scene.js';
import { ScriptedScene } from '../support/scripted-scene.js';

/** A volume in which `linked` leads to a key of another one, which keeps its old revisions. */
async function watched(options?: SceneOptions): Promise<{ scene: ScriptedScene; other: KubeletVolume }> {
  const scene = new ScriptedScene();
  const other = new KubeletVolume(scene.at('other'), { keepOldRevisions: true });
  other.publish({ key: 'one' });
  scene.volume.publish({ own: '1' });
  symlinkSync(other.path('key'), scene.volume.path('..data/linked'));
  await scene.watch(scene.volume.directory, options);
  await scene.reports('linked=one own=1');
  // From now on, a file that looks the same is not read again.
  await scene.pass(5_000);
  await scene.hint();
  return { scene, other };
}

test('it changes with the other volume, even if what it led to is still there', async () => {
  const { scene, other } = await watched();
  other.publish({ key: 'two' });
  await scene.hint();
  await scene.reports('linked=two own=1');
});

test('it is not removed because its target cannot be looked up', async () => {
  let fault: Intervention | undefined;
  const { scene, other } = await watched({ fs: fsWith({ each: (call) => fault?.(call) }) });
  other.publish({ key: 'two' });
  fault = ({ name, args: [path] }) => {
    if (name === 'lstat' && path === other.directory) throw errno('EIO', path);
  };
  await scene.hint();
  await scene.fails('ERR_TARGET_IO');
  fault = undefined;
  await scene.hint();
  await scene.reports('linked=two own=1');
  expect(scene.changes.map(({ removed }) => removed)).toEqual([[], []]);
});

const TARGETS = ['a key', 'a volume', 'a group', 'a tree'] as const;
type Kind = (typeof TARGETS)[number];

/** A volume with a key that leads out of it, to nothing so far, and another key. */
async function watchedDangling(what: Kind): Promise<{ scene: ScriptedScene; place: string }> {
  const scene = new ScriptedScene();
  const place = scene.at('other/place');
  const { volume } = scene;
  volume.publish({ own: '1' });
  symlinkSync(place, volume.path('..data/linked'));
  symlinkSync('..data/linked', volume.path('linked'));
  const paths = {
    'a key': volume.path('linked'),
    'a volume': volume.directory,
    'a group': [volume.path('linked'), volume.path('own')],
    'a tree': volume.directory,
  };
  await scene.watch(paths[what], what === 'a tree' ? { recursive: true } : {});
  if (what !== 'a key') await scene.reports('own=1');
  // From now on, a file that looks the same is not read again.
  await scene.pass(5_000);
  await scene.hint();
  return { scene, place };
}

/** The kernel tells of an entry, which it does only if that is listened to. */
async function told(scene: ScriptedScene, path: string): Promise<void> {
  const above = scene.backend.directories.find((directory) => directory.path === dirname(path));
  expect(above?.entries ?? []).toContain(basename(path));
  await scene.hint(path);
}

/** The target that has the linked key, and after that the target without. */
const states = (what: Kind): [string, string] =>
  what === 'a key' ? ['there', '(missing)'] : ['linked=there own=1', 'own=1'];

test.each(TARGETS)(
  'it appears when what it leads to does, and again after that was gone: %s',
  async (what) => {
    const { scene, place } = await watchedDangling(what);
    const [there, gone] = states(what);
    mkdirSync(dirname(place));
    await told(scene, dirname(place));
    for (let times = 0; times < 2; times += 1) {
      writeFileSync(place, 'there');
      await told(scene, place);
      await scene.comesTo(there);
      rmSync(place);
      await told(scene, place);
      await scene.comesTo(gone);
    }
  },
);

test.each(TARGETS)('it appears when what it leads to becomes a file: %s', async (what) => {
  const { scene, place } = await watchedDangling(what);
  mkdirSync(place, { recursive: true });
  await told(scene, dirname(place));
  rmdirSync(place);
  writeFileSync(place, 'there');
  await told(scene, place);
  await scene.comesTo(states(what)[0]);
});

test.each(TARGETS)('it is followed when a directory on its way becomes a link: %s', async (what) => {
  const { scene, place } = await watchedDangling(what);
  const [there, gone] = states(what);
  mkdirSync(dirname(place));
  writeFileSync(place, 'there');
  await told(scene, dirname(place));
  await scene.comesTo(there);
  await scene.pass(5_000);
  await scene.hint();
  renameSync(dirname(place), scene.at('moved'));
  symlinkSync('moved', dirname(place));
  await told(scene, dirname(place));
  renameSync(scene.at('moved'), scene.at('away'));
  await told(scene, scene.at('moved'));
  await scene.comesTo(gone);
});

test.each(['a volume', 'a tree'] as const)(
  'all of them are listened to again after one could not be looked up: %s',
  async (what) => {
    let fault: Intervention | undefined;
    const recursive = what === 'a tree' || undefined;
    const fs = fsWith({ each: (call) => fault?.(call) });
    const { scene, other } = await watched({ fs, recursive });
    const last = scene.at('last');
    writeFileSync(last, 'one');
    symlinkSync(last, scene.volume.path('..data/mine'));
    await scene.hint();
    await scene.comesTo('linked=one mine=one own=1');
    await scene.pass(5_000);
    await scene.hint();
    fault = ({ name, args: [path] }) => {
      if (name === 'lstat' && path === other.directory) throw errno('EIO', path);
    };
    await scene.hint(other.directory);
    await scene.fails('ERR_TARGET_IO');
    fault = undefined;
    await scene.hint(other.directory);
    writeFileSync(last, 'two');
    await told(scene, last);
    await scene.comesTo('linked=one mine=two own=1');
  },
);
