/** Permissions that are taken away and given back: without a resync, so that only an event can be the reason of a report. */
import { chmodSync, mkdirSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import { openScene } from '../support/open-scene.js';
import type { SceneOptions } from '../support/scene.js';
import { unprivilegedFs } from '../support/unprivileged-fs.js';

const OPTIONS: SceneOptions = { fs: unprivilegedFs(), grace: 'shorter than gaps' };

interface Kind {
  readonly what: string;
  /** Below the scene. */
  readonly target: string | readonly string[];
  readonly options?: SceneOptions;
  /** What is told if the key has this text. */
  readonly told: (text: string) => string;
}

const VOLUMES: readonly Kind[] = [
  { what: 'a key', target: 'above/volume/c/key', told: (text) => text },
  {
    what: 'a group',
    target: ['above/volume/c/key'],
    told: (text) => `key=${text}`,
  },
  { what: 'a volume', target: 'above/volume', told: (text) => `c/key=${text}` },
  { what: 'a directory in a volume', target: 'above/volume/c', told: (text) => `key=${text}` },
  { what: 'a directory with a link to a key', target: 'links', told: (text) => `key=${text}` },
  {
    what: 'a tree on a volume',
    target: 'above/volume',
    options: { recursive: true },
    told: (text) => `c/key=${text}`,
  },
  {
    what: 'a tree around a volume',
    target: 'above',
    options: { recursive: true },
    told: (text) => `volume/c/key=${text}`,
  },
];

function modeOf(path: string): number {
  return statSync(path).mode & 0o777;
}

/** A scene with a volume and a link to its key, watched and reported. */
async function watched({ target, options, told }: Pick<Kind, 'target' | 'options' | 'told'>) {
  const scene = openScene('fs');
  mkdirSync(scene.at('above'));
  const volume = new KubeletVolume(scene.at('above/volume'));
  volume.publish({ 'c/key': 'one' });
  mkdirSync(scene.at('links'));
  symlinkSync(volume.path('c/key'), scene.at('links/key'));
  const paths = typeof target === 'string' ? scene.at(target) : target.map((path) => scene.at(path));
  await scene.watch(paths, { ...OPTIONS, ...options });
  await scene.reports(told('one'));
  return { scene, volume, told };
}

describe.each(VOLUMES)('$what', (kind) => {
  describe.each(['..data/c/key', '..data/c', '..data/.'])('with a revision that denies %s', (name) => {
    test('hears of the next revision', async () => {
      const { scene, volume, told } = await watched(kind);
      volume.publish({ 'c/key': 'two' });
      chmodSync(join(volume.directory, name), 0);
      await scene.fails('ERR_TARGET_ACCESS');
      volume.publish({ 'c/key': 'three' });
      await scene.comesTo(told('three'));
      expect(scene.watcher.status()).toMatchObject({ state: 'watching', restarts: 0 });
    });

    test('hears that it can be read', async () => {
      const { scene, volume, told } = await watched(kind);
      volume.publish({ 'c/key': 'two' });
      const path = join(volume.directory, name);
      const mode = modeOf(path);
      chmodSync(path, 0);
      await scene.fails('ERR_TARGET_ACCESS');
      chmodSync(path, mode);
      await scene.comesTo(told('two'));
      expect(scene.watcher.status()).toMatchObject({ state: 'watching', restarts: 0 });
    });
  });

  test.each([
    ['above/volume', 0o000],
    ['above/volume', 0o644],
    ['above', 0o000],
    ['above', 0o644],
  ])('hears that %s was denied (%o), and that it can be entered again', async (name, mode) => {
    const { scene, volume, told } = await watched(kind);
    const path = scene.at(name);
    const before = modeOf(path);
    chmodSync(path, mode);
    await scene.fails('ERR_TARGET_ACCESS');
    chmodSync(path, before);
    volume.publish({ 'c/key': 'two' });
    await scene.comesTo(told('two'));
    expect(scene.watcher.status()).toMatchObject({ state: 'watching', restarts: 0 });
  });
});

test('a plain directory hears that a file that was denied is replaced', async () => {
  const scene = openScene('fs');
  const [first, second] = [scene.at('d/first'), scene.at('d/second')];
  mkdirSync(scene.at('d'));
  for (const path of [first, second]) writeFileSync(path, 'one');
  await scene.watch(scene.at('d'), OPTIONS);
  await scene.comesTo('first=one second=one');
  chmodSync(first, 0);
  await scene.fails('ERR_TARGET_ACCESS');
  writeFileSync(scene.at('next'), 'two');
  renameSync(scene.at('next'), first);
  await scene.comesTo('first=two second=one');
});

test('a tree hears that a key behind a link in it can be read', async () => {
  const tree = { target: 'links', options: { recursive: true }, told: (text: string) => `key=${text}` };
  const { scene, volume, told } = await watched(tree);
  volume.publish({ 'c/key': 'two' });
  const path = volume.path('..data/c/key');
  const mode = modeOf(path);
  chmodSync(path, 0);
  // Told without its content.
  await scene.until(() => scene.reported.length === 2);
  chmodSync(path, mode);
  await scene.comesTo(told('two'));
});
