/** `add()` and `remove()` of a group while its files are just changing. */
import { renameSync, writeFileSync } from 'node:fs';

import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { ScriptedScene } from '../support/scripted-scene.js';

const GROUP_SETTLE_MS = 200;
const SWAP_MS = 25;

function volumeIn(scene: ScriptedScene, name: string, text: string): KubeletVolume {
  const volume = new KubeletVolume(scene.at(name));
  volume.publish({ key: text });
  return volume;
}

/** A file that appears by rename. */
function place(scene: ScriptedScene, name: string, text: string): string {
  writeFileSync(scene.at('next'), text);
  renameSync(scene.at('next'), scene.at(name));
  return scene.at(name);
}

test.each(['another volume', 'a file'])(
  'a volume beside %s that is swapped every 25 ms is reported while paths are added and removed all the time',
  async (what) => {
    const scene = new ScriptedScene();
    const volume = volumeIn(scene, 'one', '0');
    const beside = what === 'a file' ? place(scene, 'file', '0') : volumeIn(scene, 'two', '0').path('key');
    const extra = place(scene, 'extra', 'e');
    await scene.watch([volume.path('key'), beside], { groupSettleMs: GROUP_SETTLE_MS });
    let isIn = false;
    let oldest = 0;
    for (let round = 1; round <= 100; round += 1) {
      volume.publish({ key: String(round) });
      scene.backend.hint();
      void (isIn ? scene.watcher.remove(extra) : scene.watcher.add(extra));
      isIn = !isIn;
      await scene.pass(SWAP_MS);
      const shown = Number(scene.watcher.current?.files.get(volume.path('key'))?.content);
      oldest = Math.max(oldest, round - shown);
    }
    // Never older than the longest wait for the other links of the group, and one swap.
    expect(oldest).toBeLessThanOrEqual(GROUP_SETTLE_MS / SWAP_MS + 1);
    expect(scene.changes.some((change) => change.added.includes(extra))).toBe(true);
    expect(scene.changes.some((change) => change.removed.includes(extra))).toBe(true);
  },
);
