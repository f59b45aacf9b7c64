/** kubelet on Windows removes `..data` and links it again, so that for a moment a volume has no contents. */
import { symlinkSync, unlinkSync } from 'node:fs';

import { expect, test } from 'vitest';

import { ScriptedScene } from '../support/scripted-scene.js';

test.each(['key', ''])(
  'a moment without ..data is not reported, but the new revision is: %j',
  async (key) => {
    const scene = new ScriptedScene();
    const { volume } = scene;
    volume.publish({ key: 'v1' });
    await scene.watch(volume.path(key));
    scene.changes.splice(0);

    const { revision } = volume.publish({ key: 'v2' });
    const data = volume.path('..data');
    unlinkSync(data);
    await scene.hint();
    await scene.pass(1);
    expect(scene.changes).toEqual([]);

    symlinkSync(revision, data);
    await scene.hint();
    await scene.pass(5_000);
    expect(scene.changes).toHaveLength(1);
    expect(scene.changes).toMatchObject([{ added: [], removed: [] }]);
    expect(scene.changes[0]?.current.files.get('key')?.content?.toString()).toBe('v2');
  },
);
