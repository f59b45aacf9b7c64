/** File systems on which a lookup folds names, as those of macOS, of Windows and of what Docker Desktop shares. */
import { linkSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ResilientWatcher, type FileSystem } from 'resilient-watcher';
import { ScriptedBackend } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { fsWith } from '../support/intercepted-fs.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const fold = (name: string): string => name.normalize().toLowerCase();

/** Lookups fold names below the root; listings show what is on the disk. @param before called before each call. */
function foldingFs(root: string, before?: () => void): FileSystem {
  const onDisk = (path: unknown): unknown => {
    if (typeof path !== 'string' || !path.startsWith(`${root}/`)) return path;
    let at = root;
    for (const name of path.slice(root.length + 1).split('/')) {
      const names = readdirSync(at).filter((each) => fold(each) === fold(name));
      at = `${at}/${names.includes(name) ? name : (names[0] ?? name)}`;
    }
    return at;
  };
  return fsWith({
    each: ({ args: [path, ...rest], make }) => {
      before?.();
      return make([onDisk(path), ...rest]);
    },
  });
}

const CASES: readonly (readonly [string, string, string])[] = [
  ['a rename of the case', 'Config.yaml', 'config.yaml'],
  ['a rename from composed to decomposed letters', 'caf\u00e9', 'cafe\u0301'],
];

for (const recursive of [false, true]) {
  const what = recursive ? 'a tree' : 'a directory';

  async function start(root: string): Promise<{ watcher: ResilientWatcher; backend: ScriptedBackend }> {
    const backend = new ScriptedBackend();
    const options = { backend, fs: foldingFs(root), missingGraceMs: 0, settleMs: 0, resyncIntervalMs: 0 };
    const watcher = new ResilientWatcher(root, { ...options, recursive });
    onTestFinished(() => watcher.close());
    await watcher.start();
    return { watcher, backend };
  }

  const keys = (watcher: ResilientWatcher): string[] => [...(watcher.current?.files.keys() ?? [])].sort();

  test.each(CASES)(`${what} shows a file only under its new name after %s`, async (_, from, to) => {
    const root = temporaryDirectory();
    writeFileSync(join(root, from), 'one');
    writeFileSync(join(root, 'other'), 'x');
    // It has another name elsewhere.
    linkSync(join(root, from), join(temporaryDirectory(), 'linked'));
    const { watcher, backend } = await start(root);
    renameSync(join(root, from), join(root, to));
    for (const name of [from, to]) backend.hint(join(root, name));
    await watcher.check();
    await expect.poll(() => keys(watcher)).toEqual([to, 'other'].sort());
    writeFileSync(join(root, to), 'two, longer');
    backend.hint(join(root, to));
    await expect.poll(() => String(watcher.current?.files.get(to)?.content)).toBe('two, longer');
    expect(keys(watcher)).toEqual([to, 'other'].sort());
  });

  test(`${what} shows no file under a name that only an event gives it`, async () => {
    const root = temporaryDirectory();
    writeFileSync(join(root, 'config.yaml'), 'one');
    const { watcher, backend } = await start(root);
    writeFileSync(join(root, 'config.yaml'), 'two, longer');
    for (const name of ['CONFIG.YAML', 'config.yaml']) backend.hint(join(root, name));
    await expect.poll(() => String(watcher.current?.files.get('config.yaml')?.content)).toBe('two, longer');
    await watcher.idle();
    expect(keys(watcher)).toEqual(['config.yaml']);
  });
}

/** What is renamed, and its key then. It is also visited by its old name, before the directory above it. */
const RENAMED: readonly (readonly [string, (path: string) => void, string])[] = [
  [
    'a directory',
    (path) => {
      mkdirSync(path);
      writeFileSync(join(path, 'key'), 'one');
    },
    'app/key',
  ],
  ['a link', (path) => symlinkSync(join(path, '../../elsewhere'), path), 'app'],
];

test.each(RENAMED)(
  'a tree shows %s only under its new name after a rename of the case',
  async (_, make, key) => {
    const root = join(temporaryDirectory(), 'root');
    mkdirSync(root);
    writeFileSync(join(root, '../elsewhere'), 'one');
    make(join(root, 'App'));
    const backend = new ScriptedBackend();
    let isTold = true;
    // They come during a look, and the next one serves both.
    const fs = foldingFs(root, () => {
      if (isTold) return;
      isTold = true;
      for (const name of ['App', 'app']) backend.hint(join(root, name));
    });
    const options = { backend, fs, missingGraceMs: 0, settleMs: 0, resyncIntervalMs: 0 };
    const watcher = new ResilientWatcher(root, { ...options, recursive: true });
    onTestFinished(() => watcher.close());
    await watcher.start();
    renameSync(join(root, 'App'), join(root, 'app'));
    isTold = false;
    backend.hint(join(root, 'other'));
    await expect.poll(() => [...(watcher.current?.files.keys() ?? [])]).toEqual([key]);
    await watcher.idle();
    expect([...(watcher.current?.files.keys() ?? [])]).toEqual([key]);
  },
);

test('names that differ in case only are two files where a lookup does not fold them', async () => {
  const root = temporaryDirectory();
  writeFileSync(join(root, 'a'), '1');
  const watcher = new ResilientWatcher(root, { recursive: true, settleMs: 0, resyncIntervalMs: 0 });
  onTestFinished(() => watcher.close());
  await watcher.start();
  linkSync(join(root, 'a'), join(root, 'A'));
  await expect.poll(() => [...(watcher.current?.files.keys() ?? [])].sort()).toEqual(['A', 'a']);
});

test('of two such files, one that a listing leaves out is still there', async () => {
  const root = temporaryDirectory();
  for (const name of ['a', 'A', 'b']) writeFileSync(join(root, name), name);
  let isLeftOut = false;
  // As btrfs may do with an entry that is renamed over meanwhile.
  const fs = fsWith({
    readdir: ({ make }) => {
      const entries = make() as { name: string }[];
      return isLeftOut ? entries.filter(({ name }) => name !== 'A') : entries;
    },
  });
  const backend = new ScriptedBackend();
  const options = { backend, fs, missingGraceMs: 0, settleMs: 0, resyncIntervalMs: 0 };
  const watcher = new ResilientWatcher(root, options);
  onTestFinished(() => watcher.close());
  await watcher.start();
  isLeftOut = true;
  writeFileSync(join(root, 'c'), 'c');
  await watcher.check();
  expect([...(watcher.current?.files.keys() ?? [])].sort()).toEqual(['A', 'a', 'b', 'c']);
});
