/** A link or a directory that is replaced or renamed while it is read, whichever call that happens at. */
import { mkdirSync, renameSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { forEachCallOfCheck } from '../support/each-call.js';
import { fsWith } from '../support/intercepted-fs.js';
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
        return fsWith(
          {
            each: () => {
              if (isTheOne()) replace();
            },
          },
          sync ? undefined : 'unknown',
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

const FILES = ['a', 'd/b', 'd/e/c'];
const WHOLE = 'a=text d/b=text d/e/c=text v/key=text';

test.each([1, 2, 5])(
  'a tree is reported whole although a directory above it is renamed away for %i calls of the first look',
  async (lasting) => {
    for (let at = 1, isReached = true; isReached; at += 1) {
      const scene = new ScriptedScene();
      for (const path of FILES.map((name) => scene.at(`above/tree/${name}`))) {
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, 'text');
        utimesSync(path, 1, 1);
      }
      new KubeletVolume(scene.at('above/tree/v')).publish({ key: 'text' });
      let calls = 0;
      const fs = fsWith({
        each: ({ make }) => {
          calls += 1;
          if (calls === at) renameSync(scene.at('above'), scene.at('away'));
          try {
            return make();
          } finally {
            if (calls === at + lasting - 1) renameSync(scene.at('away'), scene.at('above'));
          }
        },
      });
      await scene.watch(scene.at('above/tree'), { fs, recursive: true, missingGraceMs: 0 });
      isReached = calls >= at + lasting - 1;
      calls = Infinity;
      if (isReached) {
        await scene.hint(scene.at('above'));
        await scene.pass(1_000);
        const firstAndLast = [scene.reported[0], scene.reported.at(-1)];
        expect(firstAndLast, `at call ${at}`).toEqual([WHOLE, WHOLE]);
      }
      await scene.watcher.close();
    }
  },
);
