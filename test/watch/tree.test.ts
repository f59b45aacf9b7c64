import {
  chmodSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import { errno } from '../support/errno.js';
import { fsWith } from '../support/intercepted-fs.js';
import { openScene, type SceneKind } from '../support/open-scene.js';
import type { Scene, SceneOptions } from '../support/scene.js';
import { ScriptedScene } from '../support/scripted-scene.js';
import { placeFile } from './scenarios/place-file.js';

/** The tree that is watched. */
const treeOf = (scene: Scene): string => scene.at('tree');

function open<S extends Scene>(scene: S): S {
  mkdirSync(treeOf(scene));
  return scene;
}

function watchTree(scene: Scene, options: SceneOptions = {}): Promise<void> {
  return scene.watch(treeOf(scene), { recursive: true, missingGraceMs: 1, ...options });
}

function write(scene: Scene, path: string, text = path): void {
  mkdirSync(join(treeOf(scene), path, '..'), { recursive: true });
  writeFileSync(join(treeOf(scene), path), text);
}

const keysOf = ({ watcher }: Scene): string[] => [...(watcher.current?.files.keys() ?? [])].sort();

/** Resolves when the files are these; unless the kernel gives the hints, those are about `paths`. */
async function shows(scene: Scene, keys: readonly string[], ...paths: string[]): Promise<void> {
  if (scene instanceof ScriptedScene) {
    for (const path of paths) scene.backend.hint(join(treeOf(scene), path));
    await scene.pass(3_000);
  } else await scene.until(() => JSON.stringify(keysOf(scene)) === JSON.stringify(keys));
  expect(keysOf(scene)).toEqual(keys);
}

describe.each<SceneKind>(['scripted', 'poll', 'fs', 'parcel'])('a tree, with hints from %s', (kind) => {
  test.each([
    ['', []],
    [', whatever is ignored of its own names', ['**/.*', '**/..data']],
  ])('a volume in it shows its keys, and a swap changes them%s', async (_, ignore) => {
    const scene = open(openScene(kind));
    write(scene, 'plain');
    const volume = new KubeletVolume(join(treeOf(scene), 'etc/app'));
    volume.publish({ key: 'v1', 'conf.d/nested': 'v1', gone: 'v1' });
    await watchTree(scene, { recursive: { ignore } });
    expect(keysOf(scene)).toEqual(['etc/app/conf.d/nested', 'etc/app/gone', 'etc/app/key', 'plain']);
    volume.publish({ key: 'v2', 'conf.d/nested': 'v2' });
    const nested = (): string => String(scene.watcher.current?.files.get('etc/app/conf.d/nested')?.content);
    await shows(scene, ['etc/app/conf.d/nested', 'etc/app/key', 'plain'], 'etc/app/..data');
    expect(nested()).toBe('v2');
    volume.publish({ key: 'v3', 'conf.d/nested': 'v3' });
    await shows(scene, ['etc/app/conf.d/nested', 'etc/app/key', 'plain'], 'etc/app/..data');
    await scene.until(() => nested() === 'v3');
    expect(scene.changes.flatMap(({ added }) => added).filter((key) => key.includes('..'))).toEqual([]);
  });

  test('with "include", only files that it matches are in it, wherever they lie', async () => {
    const scene = open(openScene(kind));
    for (const key of ['a.md', 'a.txt', 'docs/b.md', 'docs/b.txt', 'node_modules/c.md']) write(scene, key);
    symlinkSync('docs/b.md', join(treeOf(scene), 'link.md'));
    symlinkSync('docs/b.md', join(treeOf(scene), 'link.txt'));
    symlinkSync('/proc/1/mem/x', join(treeOf(scene), 'odd.txt'));
    const volume = new KubeletVolume(join(treeOf(scene), 'volume'));
    volume.publish({ 'k.md': '1', 'k.txt': '1' });
    await watchTree(scene, { recursive: { include: ['**/*.md'], ignore: ['**/node_modules'] } });
    expect(keysOf(scene)).toEqual(['a.md', 'docs/b.md', 'link.md', 'volume/k.md']);
    write(scene, 'docs/b.txt', 'other');
    renameSync(join(treeOf(scene), 'a.txt'), join(treeOf(scene), 'c.md'));
    renameSync(join(treeOf(scene), 'a.md'), join(treeOf(scene), 'a.txt'));
    write(scene, 'new/d.md');
    await shows(
      scene,
      ['c.md', 'docs/b.md', 'link.md', 'new/d.md', 'volume/k.md'],
      'new',
      'a.md',
      'a.txt',
      'c.md',
    );
    expect(scene.changes.flatMap(({ added, changed }) => [...added, ...changed])).not.toContainEqual(
      expect.stringMatching(/txt$/),
    );
  });

  test('contents are read on request, ignored files are not, and links are followed on request', async () => {
    const scene = open(openScene(kind));
    write(scene, 'a');
    write(scene, 'node_modules/x');
    const store = join(treeOf(scene), '../store');
    mkdirSync(store);
    writeFileSync(join(store, 'file'), 'file');
    symlinkSync('../store', join(treeOf(scene), 'link'));
    await watchTree(scene, { recursive: { ignore: ['**/node_modules'], followLinks: true } });
    const texts = () =>
      Object.fromEntries(
        [...(scene.watcher.current?.files ?? [])].map(([key, { content }]) => [key, String(content)]),
      );
    expect(texts()).toEqual({ a: 'a', 'link/file': 'file' });
    writeFileSync(join(store, 'new'), 'new');
    write(scene, 'node_modules/y');
    await shows(scene, ['a', 'link/file', 'link/new'], '../store/new');
    expect(texts()).toEqual({ a: 'a', 'link/file': 'file', 'link/new': 'new' });
  });
});

// Where a remote file system is mounted, no call is synchronous.
test.each([true, false])(
  'a new directory leads to a check of that directory alone, synchronous: %s',
  async (sync) => {
    const scanned: string[] = [];
    const fs = fsWith(
      {
        each: ({ name, args: [path] }) => {
          if (name === 'readdir') scanned.push(String(path));
        },
      },
      sync ? undefined : 'unknown',
    );
    const scene = open(new ScriptedScene());
    write(scene, 'a/b');
    await watchTree(scene, { fs });
    expect(scanned).toContain(join(treeOf(scene), 'a'));
    scanned.length = 0;
    write(scene, 'c/d/e');
    await shows(scene, ['a/b', 'c/d/e'], 'c');
    expect([...new Set(scanned)].sort()).toEqual([join(treeOf(scene), 'c'), join(treeOf(scene), 'c/d')]);
  },
);

test('a file that cannot be read at present keeps its content, and is `unreadable` until it can', async () => {
  const scene = open(new ScriptedScene());
  write(scene, 'x', 'one');
  write(scene, 'y', 'one');
  let left = Infinity;
  const fs = fsWith({
    each: ({ name, args: [path] }) => {
      if (name === 'open' && left <= 0) throw errno('EMFILE', String(path));
    },
  });
  await watchTree(scene, { fs });
  const text = (key: string): string => String(scene.watcher.current?.files.get(key)?.content);
  left = 0;
  write(scene, 'x', 'two');
  await shows(scene, ['x', 'y'], 'x');
  expect([text('x'), text('y')]).toEqual(['one', 'one']);
  expect(scene.errors).toMatchObject([{ code: 'ERR_TARGET_IO' }]);
  left = Infinity;
  scene.backend.hint();
  await shows(scene, ['x', 'y']);
  expect([text('x'), text('y'), scene.errors.length]).toEqual(['two', 'one', 1]);
});

test('a file without read permission is compared by identity, and its content is reported when it can be read', async () => {
  const scene = open(new ScriptedScene());
  const secret = join(treeOf(scene), 'secret');
  write(scene, 'secret');
  let isDenied = true;
  const fs = fsWith({
    each: ({ name, args: [path] }) => {
      if (name === 'open' && isDenied && path === secret) throw errno('EACCES', secret);
    },
  });
  await watchTree(scene, { fs });
  const contents: unknown[] = [];
  for (const change of [
    () => utimesSync(secret, 1, 1),
    () => {
      isDenied = false;
      chmodSync(secret, 0o640);
    },
    () => chmodSync(secret, 0o600),
  ]) {
    change();
    await shows(scene, ['secret'], 'secret');
    contents.push(scene.watcher.current?.files.get('secret')?.content?.toString());
  }
  expect(scene.changes.map(({ added, changed }) => [...added, ...changed])).toEqual([
    ['secret'],
    ['secret'],
    ['secret'],
  ]);
  expect([contents, scene.errors]).toEqual([[undefined, 'secret', 'secret'], []]);
});

test('above a limit keeps digests or identities of all its files, and warns once', async () => {
  const scene = open(new ScriptedScene());
  const warnings: string[] = [];
  const write = (name: string, text: string): void => writeFileSync(join(treeOf(scene), name), text);
  write('a', 'x'.repeat(90));
  await watchTree(scene, { maxFiles: 2, maxContentBytes: 100, maxTotalBytes: 150 });
  scene.watcher.on('warning', ({ message }) => warnings.push(/max\w+/.exec(message)?.[0] ?? message));
  const kept = (): unknown =>
    [...(scene.watcher.current?.files.values() ?? [])].map(
      ({ content, digest }) => content?.length ?? digest.slice(0, 4),
    );
  expect(kept()).toEqual([90]);
  write('b', 'x'.repeat(90));
  await shows(scene, ['a', 'b'], 'b');
  expect(kept()).toEqual(['sha2', 'sha2']);
  write('c', '');
  await shows(scene, ['a', 'b', 'c'], 'c');
  expect(kept()).toEqual(['stat', 'stat', 'stat']);
  expect(warnings).toEqual(['maxTotalBytes', 'maxFiles']);
});

test('a resync that finds a difference has verified everything else once', async () => {
  const asked: string[] = [];
  const fs = fsWith({
    each: ({ name, args: [path] }) => {
      if (name === 'lstat') asked.push(String(path));
    },
  });
  const scene = open(new ScriptedScene());
  for (const name of ['one/a', 'two/b']) placeFile(join(treeOf(scene), name), '1', scene.root);
  await scene.watch(treeOf(scene), { recursive: true, fs, resyncIntervalMs: 5_000 });
  // Then each file has been read once more, since its timestamps were new when it was first read.
  await scene.clock.advance(15_000);
  await scene.watcher.idle();
  asked.length = 0;
  placeFile(join(treeOf(scene), 'one/a'), '2', scene.root);
  await scene.clock.advance(5_000);
  await scene.watcher.idle();
  expect(asked).toContain(join(treeOf(scene), 'one/a'));
  const still = join(treeOf(scene), 'two/b');
  expect(asked.filter((path) => path === still)).toEqual([still]);
  await scene.comesTo('one/a=2 two/b=1');
});

test('at the start, how often a directory is listed does not depend on how deep it is', async () => {
  const listsOfEach = async (depth: number): Promise<number> => {
    let lists = 0;
    const fs = fsWith({
      each: ({ name }) => {
        if (name === 'readdir') lists += 1;
      },
    });
    const scene = open(new ScriptedScene());
    write(scene, join(...Array<string>(depth).fill('d'), 'file'), 'text');
    await watchTree(scene, { fs });
    expect(keysOf(scene)).toHaveLength(1);
    return lists / (depth + 1);
  };
  expect(await listsOfEach(40)).toBeLessThan(2 * (await listsOfEach(5)));
});

test('the files of a volume in a tree are gone when its link leads to a file', async () => {
  const scene = new ScriptedScene();
  mkdirSync(scene.at('d/e'), { recursive: true });
  for (const key of ['a', 'd/e/a']) writeFileSync(scene.at(key), key);
  await scene.watch(scene.root, { recursive: true });
  // For the watcher, and for a look that remembers nothing.
  const shown = async (): Promise<string[][]> =>
    [await scene.watcher.snapshot(), scene.watcher.current].map((each) =>
      [...(each?.files.keys() ?? [])].sort(),
    );
  scene.volume.publish({ key: '1' });
  await scene.settle();
  const whole = ['a', 'd/e/a', 'volume/key'];
  expect(await shown()).toEqual([whole, whole]);
  writeFileSync(scene.at('volume/file'), 'no directory');
  symlinkSync('file', scene.at('volume/next'));
  renameSync(scene.at('volume/next'), scene.at('volume/..data'));
  await scene.settle();
  const left = ['a', 'd/e/a'];
  expect(await shown()).toEqual([left, left]);
});

test('a directory is shown under the first of its links, also when another one was looked at before the shown one went', async () => {
  const scene = open(new ScriptedScene());
  mkdirSync(scene.at('directory'));
  writeFileSync(scene.at('directory/f'), 'text');
  const link = (name: string): string => join(treeOf(scene), name);
  symlinkSync(scene.at('directory'), link('c'));
  await watchTree(scene, { recursive: { followLinks: true }, missingGraceMs: 500 });
  for (const name of ['a', 'b']) {
    symlinkSync(scene.at('directory'), link(name));
    await scene.hint(link(name));
  }
  rmSync(link('a'));
  // Both are pending: one is added, and the other one is removed.
  await scene.pass(400);
  await shows(scene, ['b/f'], 'a');
});

test('however many files a tree is told of at once, none is left out', async () => {
  const scene = open(new ScriptedScene());
  const names = Array.from({ length: 1_200 }, (_, number) => `f${1_000 + number}`);
  await watchTree(scene);
  for (const name of names) write(scene, name);
  write(scene, 'first');
  // While it looks, so that one look serves all of them.
  scene.watcher.once('change', () => {
    for (const name of names) scene.backend.hint(join(treeOf(scene), name));
  });
  await shows(scene, ['first', ...names].sort(), 'first');
});

test('a directory that two links lead through is listened to as it is now', async () => {
  const scene = open(new ScriptedScene());
  for (const [directory, text] of [
    ['directory', 'one'],
    ['next', 'two'],
  ] as const) {
    mkdirSync(scene.at(directory));
    writeFileSync(scene.at(`${directory}/f`), text);
  }
  for (const name of ['one', 'two']) symlinkSync('../directory/f', join(treeOf(scene), name));
  await watchTree(scene);
  renameSync(scene.at('directory'), scene.at('before'));
  renameSync(scene.at('next'), scene.at('directory'));
  await scene.settle();
  expect(scene.reported.at(-1)).toBe('one=two two=two');
  const listened = scene.backend.directories.find(({ path }) => path === scene.at('directory'));
  expect(listened?.identity).toContain(String(statSync(scene.at('directory')).ino));
});
