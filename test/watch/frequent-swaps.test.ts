/** kubelet on Windows removes `..data` and links it again, so that for a moment a volume has no contents. */
import { mkdirSync, readdirSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';

import { expect, test } from 'vitest';

import type { SceneOptions } from '../support/scene.js';
import { ScriptedScene } from '../support/scripted-scene.js';

test.each<[string, string | readonly string[], SceneOptions?]>([
  ['a volume', 'volume'],
  ['a key', 'volume/a'],
  ['a group', ['volume/a', 'file']],
  ['a tree on a volume', 'volume', { recursive: true }],
  ['a tree around a volume', '.', { recursive: true }],
  ['links into a volume', 'links'],
])(
  '%s whose gaps are short is not reported missing by polls that all fall into a gap',
  async (_, target, options) => {
    const scene = new ScriptedScene({ hints: 'poll' });
    const { volume } = scene;
    const { revision } = volume.publish({ a: '1', b: '1' });
    writeFileSync(scene.at('file'), 'file');
    mkdirSync(scene.at('links'));
    symlinkSync('../volume/a', scene.at('links/a'));
    await scene.watch(typeof target === 'string' ? scene.at(target) : target.map((path) => scene.at(path)), {
      missingGraceMs: 500,
      ...options,
    });
    scene.takeChanges();
    await scene.pass(990 - scene.clock.monotonic());
    const data = volume.path('..data');
    for (let ms = 990; ms < 2_040; ms += 5) {
      const isThere = readdirSync(volume.directory).includes('..data');
      if (isThere && ms % 50 === 45) unlinkSync(data);
      else if (!isThere && ms % 50 === 10) symlinkSync(revision, data);
      await scene.pass(5);
    }
    expect(scene.takeChanges()).toEqual([]);
    unlinkSync(data);
    await scene.pass(2_000);
    expect(scene.takeChanges()).toHaveLength(1);
  },
);
