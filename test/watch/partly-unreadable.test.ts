import { mkdirSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';

import { expect, test } from 'vitest';

import { errno, faultyFileSystem } from '../support/faulty-file-system.js';
import { ScriptedScene } from '../support/scripted-scene.js';

test('a directory in a tree that becomes unreadable keeps its files; that and its recovery are reported', async () => {
  const scene = new ScriptedScene();
  const closed = scene.at('closed');
  mkdirSync(closed);
  writeFileSync(scene.at('closed/file'), 'kept');
  let isClosed = false;
  const fs = faultyFileSystem((name, [path]) => {
    if (isClosed && name === 'readdir' && path === closed) throw errno('EACCES', path);
  });
  await scene.watch(scene.root, { recursive: true, fs });
  /** What is reported from now on until nothing is left to do. */
  const settled = async (): Promise<{ keys: string[]; events: string[] }> => {
    await scene.settle();
    const keys = scene.changes
      .splice(0)
      .flatMap(({ added, changed, removed }) => [...added, ...changed, ...removed]);
    return { keys, events: scene.events.splice(0).filter((event) => !event.startsWith('change')) };
  };
  expect(await settled()).toEqual({ keys: ['closed/file'], events: [] });
  // As when a directory is created and then given to its reader.
  isClosed = true;
  await scene.hint();
  isClosed = false;
  expect(await settled()).toEqual({ keys: [], events: [] });
  isClosed = true;
  expect(await settled()).toEqual({
    keys: [],
    events: [expect.stringMatching(/^unreadable: Cannot read ".*closed": permission denied/)],
  });
  expect(scene.watcher.status().target).toBe('unreadable');
  writeFileSync(scene.at('file'), 'reported');
  expect(await settled()).toEqual({ keys: ['file'], events: [] });
  isClosed = false;
  expect(await settled()).toEqual({ keys: [], events: [expect.stringMatching(/^readable after/)] });
  rmSync(closed, { recursive: true });
  expect(await settled()).toEqual({ keys: ['closed/file'], events: [] });
});

test('a directory in a tree is not listened to while it is unreadable, nor what is below it', async () => {
  const scene = new ScriptedScene();
  mkdirSync(scene.at('closed/below'), { recursive: true });
  let isClosed = false;
  const fs = faultyFileSystem((name, [path]) => {
    const isThere = name === 'readdir' ? path === scene.at('closed') : String(path).includes('closed/');
    if (isClosed && isThere) throw errno('EACCES', String(path));
  });
  await scene.watch(scene.root, { recursive: true, fs });
  const listened = (): string[] =>
    scene.backend.directories.map(({ path }) => path).filter((path) => path.includes('closed'));
  expect(listened()).toEqual([scene.at('closed'), scene.at('closed/below')]);
  isClosed = true;
  await scene.hint();
  expect(listened()).toEqual([]);
  writeFileSync(scene.at('closed/below/file'), 'new');
  isClosed = false;
  await scene.hint(scene.at('closed'));
  expect(listened()).toEqual([scene.at('closed'), scene.at('closed/below')]);
  await scene.comesTo('closed/below/file=new');
});

test.each([
  ['permission', 'EACCES', 'lstat'],
  ['an answer', 'ESTALE', 'lstat'],
  ['permission', 'EACCES', 'open'],
  ['an answer', 'ESTALE', 'open'],
] as const)('links in a tree keep their files without %s (%s of %s)', async (_, code, call) => {
  const scene = new ScriptedScene();
  const outside = new ScriptedScene();
  mkdirSync(outside.at('d'));
  writeFileSync(outside.at('d/file'), 'kept');
  symlinkSync(outside.at('d'), scene.at('directory'));
  symlinkSync(outside.at('d/file'), scene.at('file'));
  let isBroken = false;
  const fs = faultyFileSystem((name, [path]) => {
    if (isBroken && name === call && String(path).startsWith(outside.at('d')))
      throw errno(code, String(path));
  });
  await scene.watch(scene.root, { recursive: { followLinks: true }, fs });
  await scene.reports('directory/file=kept file=kept');
  isBroken = true;
  await scene.settle();
  await scene.quiet();
  expect(scene.watcher.status().target).toBe(call === 'open' ? 'tree' : 'unreadable');
  writeFileSync(scene.at('other'), 'reported');
  await scene.reports('directory/file=kept file=kept other=reported');
  isBroken = false;
  unlinkSync(scene.at('file'));
  await scene.reports('directory/file=kept other=reported');
  expect(scene.watcher.status().target).toBe('tree');
});

test.each<[string, (scene: ScriptedScene) => void]>([
  [
    'leads out of it',
    ({ volume }) => {
      unlinkSync(volume.path('..data'));
      symlinkSync('/', volume.path('..data'));
    },
  ],
  ['leads to unreadable files', ({ volume }) => void volume.publish({ a: '2' })],
])('a volume in a tree keeps its files while its link %s', async (_, arrange) => {
  const scene = new ScriptedScene();
  scene.volume.publish({ a: '1' });
  let isDenied = false;
  const fs = faultyFileSystem((name, [path]) => {
    if (isDenied && name === 'open' && String(path).endsWith('/a')) throw errno('EACCES', String(path));
  });
  await scene.watch(scene.root, { recursive: true, fs });
  await scene.reports('volume/a=1');
  isDenied = true;
  arrange(scene);
  await scene.settle();
  expect(scene.watcher.status().target).toBe('unreadable');
  writeFileSync(scene.at('other'), 'reported');
  await scene.reports('other=reported volume/a=1');
  isDenied = false;
  unlinkSync(scene.volume.path('..data'));
  scene.volume.publish({ a: '3' });
  await scene.reports('other=reported volume/a=3');
  expect(scene.watcher.status().target).toBe('tree');
});
