/** A revision is what `..data` points to, whatever its name is: other publishers than kubelet choose others. */
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { readVolume, type ResilientWatcherOptions } from 'resilient-watcher';
import { describe, expect, test } from 'vitest';

import { KernelScene } from '../support/kernel-scene.js';
import { ScriptedScene } from '../support/scripted-scene.js';

/** Publishes a revision by one rename, and removes the old one. */
function publish(directory: string, revision: string, text: string, old?: string): void {
  mkdirSync(join(directory, revision), { recursive: true });
  for (const key of ['a', 'b']) {
    writeFileSync(join(directory, revision, key), text);
    if (old === undefined) symlinkSync(`..data/${key}`, join(directory, key));
  }
  symlinkSync(revision, join(directory, '..data_tmp'));
  renameSync(join(directory, '..data_tmp'), join(directory, '..data'));
  if (old !== undefined) rmSync(join(directory, old), { recursive: true });
}

const targets: Record<string, [(volume: string) => string | string[], ResilientWatcherOptions?]> = {
  'a key': [(volume) => join(volume, 'a')],
  'a volume': [(volume) => volume],
  'a group': [(volume) => [join(volume, 'a'), join(volume, 'b')]],
  'a tree': [(volume) => volume, { recursive: true }],
};

describe.each([
  ['..2026_11_21_000001.77', '..2026_11_21_000002.78'],
  ['..2026_11_21_00_00_01.77', '..2026_11_21_00_00_02.78'],
  ['..v1', '..v2'],
])('revisions named %s', (first, second) => {
  test.each(Object.entries(targets))('%s', async (what, [pathOf, options]) => {
    const scene = new ScriptedScene();
    const volume = scene.at('volume');
    publish(volume, first, 'one');
    await scene.watch(pathOf(volume), options);
    const textsOf = (): Set<string> =>
      new Set([...(scene.watcher.current?.files.values() ?? [])].map(({ content }) => String(content)));
    expect(textsOf()).toEqual(new Set(['one']));
    expect([...(scene.watcher.current?.files.keys() ?? [])].filter((key) => key.includes('..'))).toEqual([]);
    publish(volume, second, 'two', first);
    // Complete, and so at once.
    await scene.hint();
    expect(textsOf()).toEqual(new Set(['two']));
    expect(scene.changes).toHaveLength(2);
    if (what === 'a key' || what === 'a volume') expect(scene.watcher.status().revision).toBe(second);
    expect(scene.watcher.status().watchedDirectories).not.toContain(join(volume, second));
    expect(await readVolume(volume)).toMatchObject({ kind: 'volume', revision: second });
  });
});

test.each(Object.entries(targets))(
  'a revision without two dots in its name, which appears after the link to it: %s',
  async (what, [pathOf, options]) => {
    const scene = new KernelScene('fs');
    const volume = scene.at('volume');
    publish(volume, 'v1', '1');
    renameSync(join(volume, 'v1'), scene.at('v1'));
    await scene.watch(pathOf(volume), { grace: 'shorter than gaps', ...options });
    renameSync(scene.at('v1'), join(volume, 'v1'));
    await scene.comesTo(what === 'a key' ? '1' : 'a=1 b=1');
    // The same link again, so only the revision tells that it is gone.
    rmSync(join(volume, 'v1'), { recursive: true });
    await scene.until(() => scene.watcher.current?.files.size === 0);
  },
);

test('a directory whose name begins as that of the revision is listened to, if a key leads there', async () => {
  const scene = new KernelScene('fs');
  const volume = scene.at('volume');
  mkdirSync(join(volume, 'v1'), { recursive: true });
  mkdirSync(join(volume, 'v10'));
  writeFileSync(join(volume, 'v10/key'), 'one');
  symlinkSync('../v10/key', join(volume, 'v1/key'));
  symlinkSync('v1', join(volume, '..data'));
  symlinkSync('..data/key', join(volume, 'key'));
  await scene.watch(join(volume, 'key'));
  await scene.reports('one');
  writeFileSync(join(volume, 'v10/next'), 'two');
  renameSync(join(volume, 'v10/next'), join(volume, 'v10/key'));
  await scene.reports('two');
});
