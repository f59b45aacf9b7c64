import { mkdirSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';

import { expect, test } from 'vitest';

import { errno } from '../support/errno.js';
import { fsWith } from '../support/intercepted-fs.js';
import { ScriptedScene } from '../support/scripted-scene.js';

test('a directory in a tree is not listened to while it is unreadable, nor what is below it', async () => {
  const scene = new ScriptedScene();
  mkdirSync(scene.at('closed/below'), { recursive: true });
  let isClosed = false;
  const fs = fsWith({
    each: ({ name, args: [path] }) => {
      const isThere = name === 'readdir' ? path === scene.at('closed') : String(path).includes('closed/');
      if (isClosed && isThere) throw errno('EACCES', String(path));
    },
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
  const fs = fsWith({
    each: ({ name, args: [path] }) => {
      if (isBroken && name === call && String(path).startsWith(outside.at('d')))
        throw errno(code, String(path));
    },
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

/** A directory in a tree that cannot be listed while it is closed. */
function closedDirectory() {
  const scene = new ScriptedScene();
  mkdirSync(scene.at('closed'));
  writeFileSync(scene.at('closed/file'), 'text');
  const state = { isClosed: false };
  const fs = fsWith({
    each: ({ name, args: [path] }) => {
      if (state.isClosed && name === 'readdir' && path === scene.at('closed')) throw errno('EACCES', path);
    },
  });
  return { scene, state, fs };
}

test('a part of a tree that can be read again when its grace is over is not unreadable, also if no event has come yet', async () => {
  const { scene, state, fs } = closedDirectory();
  await scene.watch(scene.root, { recursive: true, missingGraceMs: 500, fs });
  state.isClosed = true;
  await scene.hint(scene.at('closed'));
  await scene.pass(400);
  state.isClosed = false;
  await scene.pass(1_000);
  expect(scene.errors).toEqual([]);
});

test('a directory of a tree that could never be listed is found by a resync once it can be, without any event', async () => {
  const { scene, state, fs } = closedDirectory();
  state.isClosed = true;
  await scene.watch(scene.root, { recursive: true, resync: true, fs });
  // By then, the directory above it is known by its time.
  await scene.pass(5_000);
  state.isClosed = false;
  await scene.pass(2_000);
  expect(scene.reported.at(-1)).toBe('closed/file=text');
});

test('a link out of a volume in a tree, behind which nothing can be read, is heard when it leads elsewhere', async () => {
  const scene = new ScriptedScene();
  const { volume } = scene;
  for (const name of ['closed', 'open']) {
    mkdirSync(scene.at(`outside/${name}`), { recursive: true });
    writeFileSync(scene.at(`outside/${name}/file`), name);
  }
  scene.relink('outside/link', 'closed/file');
  volume.publish({ key: '1' });
  symlinkSync(scene.at('outside/link'), volume.path('..data/far'));
  let isClosed = false;
  const fs = fsWith({
    each: ({ args: [path] }) => {
      if (isClosed && String(path).startsWith(scene.at('outside/closed/')))
        throw errno('EACCES', String(path));
    },
  });
  await scene.watch(volume.directory, { recursive: true, fs });
  await scene.reports('far=closed key=1');
  isClosed = true;
  await scene.fails('ERR_TARGET_ACCESS');
  scene.relink('outside/link', 'open/file');
  await scene.hint(scene.at('outside/link'));
  await scene.pass(2_000);
  expect(scene.reported.at(-1)).toBe('far=open key=1');
});
