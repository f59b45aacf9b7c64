/** What comes and goes all the time is reported, and not as missing. kubelet on Windows removes `..data` and links it again. */
import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';

import { KubeletVolume } from 'resilient-watcher/testing';
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

test('a file that is there most of the time is not reported as removed by resyncs that find it gone', async () => {
  const scene = new ScriptedScene({ hints: 'poll' });
  for (const name of ['file', 'other']) writeFileSync(scene.at(name), name);
  const intervals = { pollIntervalMs: 60_000, resyncIntervalMs: 1_000 };
  await scene.watch(scene.root, { missingGraceMs: 500, ...intervals });
  await scene.pass(990 - scene.clock.monotonic());
  for (let ms = 990; ms < 2_040; ms += 5) {
    if (ms % 50 === 45) rmSync(scene.at('file'), { force: true });
    else if (ms % 50 === 10) writeFileSync(scene.at('file'), 'file');
    await scene.pass(5);
  }
  expect(scene.reported).toEqual(['file=file other=other']);
});

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
