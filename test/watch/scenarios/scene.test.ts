/** What a scene promises, without which the scenarios prove nothing. */
import { writeFileSync } from 'node:fs';

import { expect, test } from 'vitest';

import { openScene, type SceneKind } from '../../support/open-scene.js';

const kinds: readonly SceneKind[] =
  process.platform === 'linux' ? ['scripted', 'poll', 'fs', 'parcel'] : ['scripted', 'poll'];

test.each(kinds)(
  'with hints from %s, the reported content after a quiet period is complete',
  async (kind) => {
    const scene = openScene(kind);
    const file = scene.at('file');
    writeFileSync(file, 'one');
    await scene.watch(file);
    await scene.reports('one');
    await scene.quiet();
    writeFileSync(file, 'two');
    await expect(scene.quiet()).rejects.toThrow('two');
  },
);
