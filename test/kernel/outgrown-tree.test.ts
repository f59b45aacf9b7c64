/** A tree that needs more watches of the kernel than `fs` takes. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from 'vitest';

import { openScene } from '../support/open-scene.js';

test.runIf(process.platform === 'linux')(
  'a tree that outgrows `fs` switches to `parcel`, is still reported, and nothing is said',
  async () => {
    const scene = openScene('fs');
    const tree = scene.at('tree');
    const directories = (from: number, to: number): void => {
      for (let number = from; number < to; number += 1)
        mkdirSync(join(tree, `d${number}`), { recursive: true });
    };
    const shows = async (...keys: string[]): Promise<void> => {
      const found = (): string[] => [...(scene.watcher.current?.files.keys() ?? [])].sort();
      await scene.until(() => found().join() === keys.join());
    };
    directories(0, 4_000);
    // That is no failure, so it takes no restart.
    await scene.watch(tree, { recursive: true, missingGraceMs: 1, backend: 'auto', maxRestarts: 0 });
    expect(scene.watcher.status().backend).toBe('fs');
    const said: string[] = [];
    for (const name of ['restart', 'degraded', 'recovered'] as const)
      scene.watcher.on(name, () => void said.push(name));
    directories(4_000, 4_200);
    writeFileSync(join(tree, 'd4199/grown'), 'grown');
    await shows('d4199/grown');
    await scene.watcher.idle();
    expect(scene.watcher.status()).toMatchObject({ state: 'watching', backend: 'parcel', restarts: 0 });
    writeFileSync(join(tree, 'd4100/file'), 'file');
    await shows('d4100/file', 'd4199/grown');
    expect([said, scene.errors]).toEqual([[], []]);
  },
);
