/** What happens to the directories of a tree while it is read, whichever call that happens at. */
import { mkdirSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { interceptedFs } from '../support/intercepted-fs.js';
import { ScriptedScene } from '../support/scripted-scene.js';

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
      const fs = interceptedFs(({ make }) => {
        calls += 1;
        if (calls === at) renameSync(scene.at('above'), scene.at('away'));
        try {
          return make();
        } finally {
          if (calls === at + lasting - 1) renameSync(scene.at('away'), scene.at('above'));
        }
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
