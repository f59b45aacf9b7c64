/** A volume is published for the first time, or is made again, while a target leads into it: its keys are told together. */
import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';

import { expect, test } from 'vitest';

import { errno } from '../support/errno.js';
import { fsWith } from '../support/intercepted-fs.js';
import type { SceneOptions } from '../support/scene.js';
import { ScriptedScene } from '../support/scripted-scene.js';

const KEYS = ['a', 'b'];

type Case = [string, (scene: ScriptedScene) => string | string[], SceneOptions?];

const TARGETS: Case[] = [
  ['a group', (scene) => KEYS.map((key) => scene.at(`volume/${key}`))],
  ['a group of links', (scene) => KEYS.map((key) => scene.at(`links/${key}`))],
  ['a directory of links', (scene) => scene.at('links')],
  ['a tree of links', (scene) => scene.at('links'), { recursive: true }],
  ['a tree around the volume', (scene) => scene.root, { recursive: true }],
];

/** The first lookups of a key that is not published yet. */
const LOOKUPS = [1, 2, 3, 4];

/** Where the targets are for the program: also in the file system of a process, as a sidecar sees them. */
const ABOVE = process.platform === 'linux' ? ['', '/proc/self/root'] : [''];

const behind = (above: string, paths: string | string[]): string | string[] =>
  Array.isArray(paths) ? paths.map((path) => above + path) : above + paths;

const CASES = LOOKUPS.flatMap((number) => ABOVE.map((above) => [number, above] as const));

test.each(TARGETS.flatMap((target) => CASES.map((of): [number, string, ...Case] => [...of, ...target])))(
  'after lookup %i of a key behind "%s" by %s',
  async (number, above, _, target, options) => {
    const scene = new ScriptedScene();
    const { volume, clock } = scene;
    mkdirSync(scene.at('links'));
    for (const key of KEYS) symlinkSync(`../volume/${key}`, scene.at(`links/${key}`));
    mkdirSync(volume.directory);
    let lookups = 0;
    // As kubelet does it, up to the link of one key; the other follows at once.
    const publish = (): void => {
      mkdirSync(volume.path('..1'));
      for (const key of KEYS) {
        writeFileSync(volume.path(`..1/${key}`), '1');
        // Not in the tick of the links.
        utimesSync(volume.path(`..1/${key}`), 1, 1);
      }
      symlinkSync('..1', volume.path('..data_tmp'));
      renameSync(volume.path('..data_tmp'), volume.path('..data'));
      symlinkSync('..data/b', volume.path('b'));
      clock.schedule(() => symlinkSync('..data/a', volume.path('a')), 1);
    };
    const fs = fsWith({
      each: ({ name, args: [path], make }) => {
        if (name !== 'lstat' || !String(path).endsWith(volume.path('..data/a'))) return;
        const answer = make();
        lookups += 1;
        if (lookups === number) publish();
        return answer;
      },
    });
    await scene.watch(behind(above, target(scene)), { fs, ...options });
    if (lookups < number) publish();
    await scene.settle();
    const told = scene.takeChanges().map(({ files }) => Object.values(files));
    for (const texts of told) expect(texts.length % KEYS.length).toBe(0);
    expect(told.at(-1)?.length).toBeGreaterThan(0);
  },
);

// A tree or directory is told without a part that cannot be read.
const GROUPS = TARGETS.filter(([name]) => name.startsWith('a group'));

test.each(GROUPS.flatMap((target) => ABOVE.map((above): [string, ...Case] => [above, ...target])))(
  'whichever lookup behind "%s" is denied once, a key that is linked late is told with the other: %s',
  async (above, _, target, options) => {
    for (let at = 1, isReached = true; isReached; at += 1) {
      const scene = new ScriptedScene();
      const { volume, clock } = scene;
      mkdirSync(scene.at('links'));
      for (const key of KEYS) symlinkSync(`../volume/${key}`, scene.at(`links/${key}`));
      volume.publish({ a: '1', b: '1' });
      unlinkSync(volume.path('a'));
      clock.schedule(() => symlinkSync('..data/a', volume.path('a')), 1);
      let lookups = 0;
      const fs = fsWith({
        each: ({ name, args: [path] }) => {
          if (name === 'lstat' && String(path).startsWith(above + scene.root) && (lookups += 1) === at)
            throw errno('EACCES', String(path));
        },
      });
      await scene.watch(behind(above, target(scene)), { fs, ...options });
      isReached = lookups >= at;
      await scene.settle();
      const told = scene.takeChanges().map(({ files }) => Object.values(files));
      for (const texts of told) expect(texts.length % KEYS.length, `lookup ${at}`).toBe(0);
      await scene.watcher.close();
    }
  },
);

test.each(TARGETS)(
  'a volume is made again with the same content, and a key is linked late: %s',
  async (_, target, options) => {
    const scene = new ScriptedScene();
    const { volume } = scene;
    mkdirSync(scene.at('links'));
    for (const key of KEYS) symlinkSync(`../volume/${key}`, scene.at(`links/${key}`));
    const keys = { a: '1', b: '1' };
    volume.publish(keys);
    await scene.watch(target(scene), options);
    const [before] = scene.reported;
    rmSync(volume.directory, { recursive: true });
    volume.publish(keys);
    unlinkSync(volume.path('b'));
    await scene.hint();
    symlinkSync('..data/b', volume.path('b'));
    await scene.settle();
    expect(scene.reported).toEqual([before]);
  },
);
