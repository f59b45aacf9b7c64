/** Files that are created and written in place: never reported before they are whole, whatever else happens. */
import {
  appendFileSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';

import { expect, test } from 'vitest';

import { interceptedFs } from '../support/intercepted-fs.js';
import type { SceneOptions } from '../support/scene.js';
import { ScriptedScene } from '../support/scripted-scene.js';

async function watch(scene: ScriptedScene, path: string, options: SceneOptions = {}): Promise<void> {
  await scene.watch(scene.at(path), options);
  scene.changes.length = 0;
}

/** What was reported since the last call: the files that differ and their text. */
function reports({ changes }: ScriptedScene): string[] {
  return changes.splice(0).map(({ current, added, changed, removed }) => {
    const text = (key: string): string => `${key}=${String(current.files.get(key)?.content)}`;
    return [...[...added, ...changed].map(text), ...removed.map((key) => `-${key}`)].sort().join(' ');
  });
}

test('a file that was renamed into place is reported at once, if that shows', async () => {
  const scene = new ScriptedScene();
  mkdirSync(scene.at('a'));
  writeFileSync(scene.at('a/old'), 'old');
  await watch(scene, 'a', {});
  await scene.watcher.check();
  for (const name of ['new', 'old']) {
    writeFileSync(scene.at('next'), 'whole');
    // Renamed after its last write, and not in the same tick.
    utimesSync(scene.at('next'), 1, 1);
    renameSync(scene.at('next'), scene.at(`a/${name}`));
    scene.backend.hint(scene.at(`a/${name}`));
    await scene.pass(5);
    expect(reports(scene)).toEqual([`${name}=whole`]);
  }
});

test('a file that is removed after a chmod does not count as renamed', async () => {
  const scene = new ScriptedScene();
  writeFileSync(scene.file, 'old');
  let isNew = false;
  let isRead = false;
  const fs = interceptedFs(({ name, args, make }) => {
    if (name === 'read') isRead = isNew;
    if (name !== 'lstat' || args[0] !== scene.root || !isRead) return make();
    [isNew, isRead] = [false, false];
    rmSync(scene.file);
    writeFileSync(scene.file, 'whole');
    return make();
  });
  await watch(scene, 'app.yaml', { fs });
  rmSync(scene.file);
  writeFileSync(scene.file, 'half');
  scene.changeMode(scene.file);
  isNew = true;
  await scene.hint();
  expect(isNew).toBe(false);
  expect(reports(scene)).toEqual([]);
  await scene.settle();
  expect(scene.changes.map(({ current }) => String(current.content))).toEqual(['whole']);
});

test('a busy log does not delay the other files of a directory whose link is retargeted', async () => {
  const scene = new ScriptedScene();
  for (const directory of ['r1', 'r2']) {
    mkdirSync(scene.at(directory));
    for (const name of ['a', 'log', `in-${directory}`])
      writeFileSync(scene.at(`${directory}/${name}`), directory);
  }
  symlinkSync('r1', scene.at('current'));
  await watch(scene, 'current');
  symlinkSync('r2', scene.at('next'));
  renameSync(scene.at('next'), scene.at('current'));
  const later = Date.now() / 1_000 + 1;
  for (let count = 0; count < 10; count += 1) {
    appendFileSync(scene.at('r2/log'), '.');
    utimesSync(scene.at('r2/log'), later, later + count);
    await scene.hint(scene.at(count === 0 ? 'current' : 'r2/log'));
    await scene.pass(20);
  }
  expect(reports(scene)).toEqual(['-in-r1 a=r2 in-r2=r2']);
  await scene.pass(50);
  expect(reports(scene)).toEqual(['log=r2..........']);
});

test.each(['a file', 'a file of a directory', 'a file of a tree'])(
  '%s that is overwritten with as many bytes, and gets its old time back, has changed',
  async (kind) => {
    const scene = new ScriptedScene();
    const path = scene.at('d/f');
    mkdirSync(scene.at('d'));
    writeFileSync(path, 'one');
    utimesSync(path, 1_000, 1_000);
    await scene.watch(kind === 'a file' ? path : scene.at('d'), { recursive: kind === 'a file of a tree' });
    const shown = (text: string): string => (kind === 'a file' ? text : `f=${text}`);
    await scene.reports(shown('one'));
    // From now on, a file that looks the same is not read again.
    await scene.pass(5_000);
    await scene.hint();
    writeFileSync(path, 'two');
    utimesSync(path, 1_000, 1_000);
    await scene.hint();
    await scene.comesTo(shown('two'));
  },
);
