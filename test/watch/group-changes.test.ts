/** `add()` and `remove()` of a group while its files are just changing. */
import { renameSync, writeFileSync } from 'node:fs';

import { KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

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

/** Waits for a promise, letting time pass meanwhile, and returns what was current when it resolved. */
async function filesAfter(scene: ScriptedScene, promise: Promise<void>): Promise<string[]> {
  let keys: string[] | undefined;
  void promise.then(() => (keys = [...(scene.watcher.current?.files.keys() ?? [])]));
  await scene.pass(20_000, () => keys !== undefined);
  return keys ?? ['it never resolved'];
}

describe('add() resolves when what it added is reported', () => {
  test('to two volumes of which one was just published', async () => {
    const scene = new ScriptedScene();
    const [one, two] = [volumeIn(scene, 'one', '1'), volumeIn(scene, 'two', '1')];
    await scene.watch([one.path('key'), two.path('key')], { groupSettleMs: GROUP_SETTLE_MS });
    one.publish({ key: '2' });
    await scene.hint();
    const added = place(scene, 'added', 'a');
    expect(await filesAfter(scene, scene.watcher.add(added))).toContain(added);
    expect(scene.changes.filter((change) => change.added.includes(added))).toHaveLength(1);
  });

  test('to a volume and a file that is being written', async () => {
    const scene = new ScriptedScene();
    const volume = volumeIn(scene, 'one', '1');
    const file = place(scene, 'file', 'f1');
    await scene.watch([volume.path('key'), file], { groupSettleMs: GROUP_SETTLE_MS });
    writeFileSync(file, 'f2');
    volume.publish({ key: '2' });
    await scene.hint();
    const added = place(scene, 'added', 'a');
    expect(await filesAfter(scene, scene.watcher.add(added))).toContain(added);
  });

  test('when the volume is published during the call', async () => {
    const scene = new ScriptedScene();
    const [one, two] = [volumeIn(scene, 'one', '1'), volumeIn(scene, 'two', '1')];
    await scene.watch([one.path('key'), two.path('key')], { groupSettleMs: GROUP_SETTLE_MS });
    const third = volumeIn(scene, 'three', '1');
    const adding = scene.watcher.add(third.path('key'));
    one.publish({ key: '2' });
    third.publish({ key: '2' });
    scene.backend.hint();
    expect(await filesAfter(scene, adding)).toContain(third.path('key'));
  });
});

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
