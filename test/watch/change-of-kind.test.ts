/** What is at a path may become something else that holds the same files: `kind` and `content` change with it. */
import { appendFileSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import { ScriptedScene } from '../support/scripted-scene.js';

/** Each has the base name of the path as its only key. */
const KINDS: Readonly<Record<string, (path: string, key: string) => void>> = {
  file: (path) => writeFileSync(path, 'same'),
  directory: (path, key) => {
    mkdirSync(path);
    writeFileSync(join(path, key), 'same');
  },
  volume: (path, key) => void new KubeletVolume(path).publish({ [key]: 'same' }),
};

const kinds = Object.keys(KINDS);
const pairs = kinds.flatMap((from) => kinds.filter((to) => to !== from).map((to) => ({ from, to })));

describe.each(pairs)('a $from that becomes a $to with the same contents', ({ from, to }) => {
  test('is one change', async () => {
    const scene = new ScriptedScene();
    const path = scene.at('target');
    KINDS[from]?.(path, 'target');
    await scene.watch(path);
    scene.takeChanges();

    rmSync(path, { recursive: true });
    KINDS[to]?.(scene.at('next'), 'target');
    renameSync(scene.at('next'), path);
    await scene.hint(path);
    await scene.settle();

    expect(scene.watcher.current?.kind).toBe(to);
    expect(scene.takeChanges()).toEqual([{ kind: to, files: { target: 'same' }, keys: '+ ~ -' }]);
    await scene.settle();
    expect(scene.takeChanges()).toEqual([]);
  });

  test('is one change when a link to the one is replaced by a link to the other', async () => {
    const scene = new ScriptedScene();
    const path = scene.at('target');
    const link = (kind: string): void => {
      mkdirSync(scene.at(kind));
      KINDS[kind]?.(scene.at(`${kind}/target`), 'target');
      symlinkSync(`${kind}/target`, scene.at('next'));
      renameSync(scene.at('next'), path);
    };
    link(from);
    await scene.watch(path);
    scene.takeChanges();
    link(to);
    await scene.settle();
    expect(scene.takeChanges()).toEqual([{ kind: to, files: { target: 'same' }, keys: '+ ~ -' }]);
  });
});

test('a file in the place of a directory is reported when it is complete, though its beginning is what was there', async () => {
  {
    const scene = new ScriptedScene();
    const path = scene.at('target');
    KINDS['directory']?.(path, basename(path));
    await scene.watch(path);
    scene.takeChanges();
    rmSync(path, { recursive: true });
    scene.backend.hint(path);
    writeFileSync(path, 'same');
    await scene.hint(path);
    await scene.pass(20);
    expect(scene.takeChanges()).toEqual([]);
    appendFileSync(path, ' and more');
    scene.backend.hint(path);
    await scene.settle();
    expect(scene.takeChanges()).toEqual([
      { kind: 'file', files: { target: 'same and more' }, keys: '+ ~target -' },
    ]);
  }
});

test('a target that becomes something else for less than its quiet period has not changed', async () => {
  const scene = new ScriptedScene();
  const path = scene.at('target');
  KINDS['directory']?.(path, basename(path));
  await scene.watch(path);
  scene.takeChanges();
  renameSync(path, scene.at('away'));
  writeFileSync(path, 'same');
  await scene.hint(path);
  rmSync(path);
  renameSync(scene.at('away'), path);
  await scene.hint(path);
  await scene.settle();
  expect(scene.takeChanges()).toEqual([]);
  expect(scene.watcher.current?.kind).toBe('directory');
});
