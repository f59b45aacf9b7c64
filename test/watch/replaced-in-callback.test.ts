/**
 * A file that was replaced by rename is read in the callback of its hint, and reported before anything else is
 * checked.
 */
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

import { nodeFileSystem, type Change, type FileSystem } from 'resilient-watcher';
import { describe, expect, test } from 'vitest';

import { errno, faultyFileSystem } from '../support/faulty-file-system.js';
import { ScriptedScene } from '../support/scripted-scene.js';

/** In a directory of no more than 500 files all are compared after any hint. */
const MANY = 520;

interface Kind {
  readonly recursive: boolean;
  readonly files: number;
  /** What is watched, if not the directory. */
  readonly target?: string;
}

const KINDS: Readonly<Record<string, Kind>> = {
  'a tree': { recursive: true, files: 3 },
  'a large directory': { recursive: false, files: MANY },
};

const FILE: Kind = { recursive: false, files: 3, target: 'f0' };

function shown({ current, added, changed, removed }: Change): string {
  const text = (key: string): string => `${key}=${String(current.files.get(key)?.content)}`;
  return [...[...added, ...changed].map(text), ...removed.map((key) => `-${key}`)].sort().join(' ');
}

/** A directory of files that is watched, or one of them; its first report is taken. */
async function watched({ recursive, files, target = '' }: Kind, fs?: FileSystem) {
  const scene = new ScriptedScene({ reportsWrites: true });
  const { backend, changes } = scene;
  const at = (name: string): string => scene.at(join('root', name));
  mkdirSync(at(''));
  for (let file = 0; file < files; file += 1) writeFileSync(at(`f${file}`), 'one');
  await scene.watch(at(target), { recursive, fs });
  const reports = (): string[] => changes.splice(0).map(shown);
  reports();
  /** @param isShown its timestamps show the rename. */
  const replace = (name: string, text: string, isShown = false): void => {
    writeFileSync(scene.at('next'), text);
    if (isShown) utimesSync(scene.at('next'), 1, 1);
    renameSync(scene.at('next'), at(name));
    backend.hint(at(name));
  };
  const pass = (ms: number): Promise<void> => scene.pass(ms);
  return { at, backend, watcher: scene.watcher, changes, replace, pass, reports };
}

test('a file that is replaced, and hinted about, while the one before it is read is left to the check', async () => {
  let intervene: (() => void) | undefined;
  const { sync } = nodeFileSystem;
  const close = (fd: number): void => {
    sync.close(fd);
    intervene?.();
  };
  const { watcher, replace, pass, reports } = await watched(FILE, {
    ...nodeFileSystem,
    sync: { ...sync, close },
  });
  intervene = () => {
    intervene = undefined;
    replace('f0', 'three');
  };
  replace('f0', 'two');
  await watcher.idle();
  await pass(1_000);
  expect(reports()).toEqual(['f0=three']);
});

test('a file alone that was replaced is reported once for each hint, in its turn', async () => {
  const { at, watcher, changes, replace, pass, reports } = await watched(FILE);
  const before = watcher.current;
  replace('f0', 'two');
  await watcher.idle();
  expect(changes).toMatchObject([{ changed: ['f0'], added: [], removed: [], cause: 'scripted' }]);
  expect(changes[0]?.previous).toBe(before);
  expect(changes[0]?.current).toEqual(watcher.current);
  expect(watcher.current).toMatchObject({ kind: 'file', path: at('f0'), realPath: at('f0'), size: 3 });
  expect(reports()).toEqual(['f0=two']);
  replace('f0', 'three');
  replace('f0', 'four', true);
  replace('f1', 'another');
  await watcher.idle();
  expect(reports()).toEqual(['f0=four']);
  await pass(1_000);
  replace('f0', 'four');
  await pass(1_000);
  expect(reports()).toEqual([]);
});

test('a file alone behind a link that was retargeted is read where the link leads', async () => {
  const scene = new ScriptedScene({ reportsWrites: true });
  for (const name of ['one', 'two']) {
    mkdirSync(scene.at(name));
    writeFileSync(scene.at(`${name}/file`), name);
  }
  symlinkSync('one', scene.at('link'));
  await scene.watch(scene.at('link/file'));
  const replace = (text: string): void => {
    writeFileSync(scene.at('next'), text);
    renameSync(scene.at('next'), scene.at('one/file'));
    scene.backend.hint(scene.at('one/file'));
  };
  replace('replaced');
  await scene.watcher.idle();
  expect(scene.reported).toEqual(['one', 'replaced']);
  symlinkSync('two', scene.at('link.next'));
  renameSync(scene.at('link.next'), scene.at('link'));
  replace('not at the path');
  await scene.watcher.idle();
  expect(scene.reported).toEqual(['one', 'replaced', 'two']);
});

describe.each(Object.entries(KINDS))('in %s', (_, kind) => {
  test('a replaced file is reported once, in the turn of its hint, whatever else is pending', async () => {
    const { at, backend, watcher, changes, replace, pass, reports } = await watched(kind);
    const before = watcher.current;
    rmSync(at('f2'));
    backend.hint(at('f2'));
    await watcher.idle();
    replace('f1', 'two');
    await watcher.idle();
    expect(changes).toMatchObject([{ changed: ['f1'], added: [], removed: [], cause: 'scripted' }]);
    expect(changes[0]?.previous).toBe(before);
    expect(changes[0]?.current).toBe(watcher.current);
    expect(reports()).toEqual(['f1=two']);
    await pass(1_000);
    expect(reports()).toEqual(['-f2']);
  });

  test('each of many replacements is reported, and those of one turn as one change', async () => {
    const { watcher, replace, reports } = await watched(kind);
    for (const text of ['two', 'three', 'four']) {
      replace('f0', text);
      replace('f1', `not ${text}`);
      replace('f1', text, true);
      await watcher.idle();
      expect(reports()).toEqual([`f0=${text} f1=${text}`]);
    }
  });

  test('a file written in place meanwhile is part of the same change; one that is renamed into place is not waited for', async () => {
    const { at, backend, watcher, replace, pass, reports } = await watched(kind);
    writeFileSync(at('f1'), 'longer');
    backend.written(at('f1'));
    replace('f0', 'two');
    await pass(30);
    expect(reports()).toEqual([]);
    await pass(100);
    expect(reports()).toEqual(['f0=two f1=longer']);

    writeFileSync(at('f0.next'), 'three');
    backend.hint(at('f0.next'));
    backend.written(at('f0.next'));
    await watcher.idle();
    renameSync(at('f0.next'), at('f0'));
    backend.hint(at('f0.next'));
    backend.hint(at('f0'));
    await watcher.idle();
    expect(reports()).toEqual(['f0=three']);
    await pass(1_000);
    expect(reports()).toEqual([]);
  });

  test('hints without a path, or about very many files, lead to one check', async () => {
    const { backend, replace, pass, reports } = await watched({ ...kind, files: Math.max(kind.files, 40) });
    replace('f0', 'two');
    backend.hint();
    await pass(1);
    expect(reports()).toEqual(['f0=two']);
    const names = Array.from({ length: 40 }, (_, number) => `f${number}`);
    for (const name of names) replace(name, 'three');
    await pass(1);
    expect(reports()).toEqual([
      names
        .map((name) => `${name}=three`)
        .sort()
        .join(' '),
    ]);
  });
});

describe.each([...Object.entries(KINDS), ['a file alone', FILE] as const])('in %s', (_, kind) => {
  test.each([
    { then: 'chmodded', mode: 0o600 },
    { then: 'left', mode: undefined },
  ])('a file that was created again and $then is not reported before it is whole', async ({ mode }) => {
    const { at, backend, pass, reports } = await watched(kind);
    rmSync(at('f0'));
    backend.hint(at('f0'));
    writeFileSync(at('f0'), 'half');
    if (mode !== undefined) chmodSync(at('f0'), mode);
    backend.hint(at('f0'));
    backend.written(at('f0'));
    await pass(30);
    appendFileSync(at('f0'), ' and half');
    backend.written(at('f0'));
    await pass(30);
    expect(reports()).toEqual([]);
    await pass(100);
    expect(reports()).toEqual(['f0=half and half']);
  });

  test('a file that was created again and is still being written is not reported before it is complete', async () => {
    const { at, backend, watcher, changes, pass } = await watched(kind);
    rmSync(at('f0'));
    writeFileSync(at('f0'), 'x'.repeat(8_192));
    backend.hint(at('f0'));
    await watcher.idle();
    expect(changes).toEqual([]);
    appendFileSync(at('f0'), 'x'.repeat(8_192));
    backend.written(at('f0'));
    await pass(100);
    expect(changes.map(({ current }) => current.files.get('f0')?.size)).toEqual([16_384]);
  });

  test('a file that was created again and is still empty is not reported', async () => {
    const { at, backend, pass, reports } = await watched(kind);
    rmSync(at('f0'));
    writeFileSync(at('f0'), '');
    backend.hint(at('f0'));
    await pass(30);
    writeFileSync(at('f0'), 'two');
    backend.written(at('f0'));
    await pass(100);
    expect(reports()).toEqual(['f0=two']);
  });

  test('changes to a file after it was read are found by the check', async () => {
    const { at, watcher, replace, pass, reports } = await watched(kind);
    replace('f0', 'two');
    writeFileSync(at('f0'), 'three');
    await watcher.idle();
    expect(reports()).toEqual(['f0=two']);
    await pass(100);
    expect(reports()).toEqual(['f0=three']);

    replace('f0', 'four');
    rmSync(at('f0'));
    await pass(1_000);
    expect(reports()).toEqual(['f0=four', '-f0']);
  });

  test('a listener that closes the watcher ends it', async () => {
    const { watcher, replace, reports } = await watched(kind);
    const closed = new Promise<void>((resolve) => {
      watcher.once('change', () => void watcher.close().then(resolve));
    });
    replace('f0', 'two');
    await closed;
    expect(reports()).toEqual(['f0=two']);
  });
});

test('files of a small directory that were replaced one after the other are still one change', async () => {
  const { replace, at, watcher, backend, pass, reports } = await watched({ recursive: false, files: 2 });
  replace('f0', 'two');
  await watcher.idle();
  writeFileSync(at('..next'), 'two');
  renameSync(at('..next'), at('f1'));
  backend.hint(at('f1'));
  await pass(1);
  await pass(1);
  expect(reports()).toEqual(['f0=two f1=two']);
});

test('a file that is exchanged thousands of times in one turn is read a few times only, and no failure escapes', async () => {
  const scene = new ScriptedScene({ reportsWrites: true });
  let [opened, isCallback] = [0, false];
  const fs = faultyFileSystem((name, [path]) => {
    if (name === 'open' && path === scene.file) opened += 1;
    if (name === 'close' && isCallback) throw errno('EIO');
  });
  writeFileSync(scene.file, 'one');
  await scene.watch(scene.file, { fs });
  opened = 0;
  for (let exchanged = 0; exchanged < 5_000; exchanged += 1) {
    writeFileSync(scene.at('next'), `${exchanged}`);
    renameSync(scene.at('next'), scene.file);
    isCallback = true;
    scene.backend.hint(scene.file);
    isCallback = false;
  }
  expect(opened).toBeLessThan(200);
  await scene.pass(1_000);
  expect(scene.reported.at(-1)).toBe('4999');
});
