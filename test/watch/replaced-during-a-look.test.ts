/** A link in whose place something else is put during a check, or the reverse. */
import { mkdirSync, renameSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';

import { expect, test } from 'vitest';

import { forEachCallOfCheck } from '../support/each-call.js';
import { faultyFileSystem } from '../support/faulty-file-system.js';
import type { SceneOptions } from '../support/scene.js';

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
    await forEachCallOfCheck({
      options,
      prepare: (scene) => {
        mkdirSync(scene.at('root'));
        for (const name of ['before', 'root/other']) writeFileSync(scene.at(name), name);
        symlinkSync('../before', scene.at('root/link'));
        return paths.map((each) => scene.at(each));
      },
      fs: (isTheOne, scene) => {
        const replace = (): void => {
          writeFileSync(scene.at('next'), 'after');
          // Visibly complete.
          utimesSync(scene.at('next'), 1, 1);
          renameSync(scene.at('next'), scene.at('root/link'));
        };
        return faultyFileSystem(
          () => {
            if (isTheOne()) replace();
          },
          { sync },
        );
      },
      verify: (scene, { at, isReached }) => {
        const reported = scene.changes.map(({ current }) =>
          [...current.files.values()].map(({ content }) => String(content)),
        );
        expect(scene.errors, `at call ${at}`).toEqual([]);
        if (isReached) expect(reported, `at call ${at}`).toEqual([expect.arrayContaining(['after'])]);
      },
    });
  },
);
