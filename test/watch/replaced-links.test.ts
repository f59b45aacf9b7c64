/** A link in whose place something else is put during a check, or the reverse. */
import { mkdirSync, renameSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';

import { expect, test } from 'vitest';

import { faultyFileSystem } from '../support/faulty-file-system.js';
import { rounds } from '../support/rounds.js';
import type { SceneOptions } from '../support/scene.js';
import { ScriptedScene } from '../support/scripted-scene.js';

const TARGETS: Record<string, [paths: readonly string[], options?: SceneOptions]> = {
  'a file': [['root/link']],
  'a group': [['root/link', 'root/other']],
  'a directory': [['root']],
  'a tree': [['root'], { recursive: true }],
};

const cases = Object.entries(TARGETS).flatMap(([target, [paths, options]]) =>
  [true, false].map((sync) => ({ target, sync, paths, options })),
);

test.each(cases)(
  '$target: whichever call a link is replaced before, the next check finds the file; synchronous calls: $sync',
  async ({ paths, options, sync }) => {
    const step = rounds(3, 1);
    for (let at = 1, isReached = true; isReached; at += step) {
      const scene = new ScriptedScene();
      mkdirSync(scene.at('root'));
      for (const name of ['before', 'root/other']) writeFileSync(scene.at(name), name);
      symlinkSync('../before', scene.at('root/link'));
      let calls = -Infinity;
      const replace = (): void => {
        writeFileSync(scene.at('next'), 'after');
        // Visibly complete.
        utimesSync(scene.at('next'), 1, 1);
        renameSync(scene.at('next'), scene.at('root/link'));
      };
      const fs = faultyFileSystem(
        () => {
          calls += 1;
          if (calls === at) replace();
        },
        { sync },
      );
      const [path = '', ...others] = paths.map((each) => scene.at(each));
      await scene.watch(others.length > 0 ? [path, ...others] : path, { fs, ...options });
      scene.changes.length = 0;
      calls = 0;
      await scene.hint();
      isReached = calls >= at;
      calls = -Infinity;
      await scene.hint();
      await scene.pass(100);
      const reported = scene.changes.map(({ current }) =>
        [...current.files.values()].map(({ content }) => String(content)),
      );
      expect(scene.errors, `at call ${at}`).toEqual([]);
      if (isReached) expect(reported, `at call ${at}`).toEqual([expect.arrayContaining(['after'])]);
      await scene.watcher.close();
    }
  },
);
