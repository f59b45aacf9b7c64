/** A key of a volume that is a link, which may lead out of its revision. */
import { symlinkSync } from 'node:fs';

import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { errno, faultyFileSystem, type Fault } from '../support/faulty-file-system.js';
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
  let fault: Fault | undefined;
  const { scene, other } = await watched({ fs: faultyFileSystem((...call) => fault?.(...call)) });
  other.publish({ key: 'two' });
  fault = (name, [path]) => {
    if (name === 'lstat' && path === other.directory) throw errno('EIO', path);
  };
  await scene.hint();
  await scene.fails('ERR_TARGET_IO');
  fault = undefined;
  await scene.hint();
  await scene.reports('linked=two own=1');
  expect(scene.changes.map(({ removed }) => removed)).toEqual([[], []]);
});
