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

test.each<[string, string | readonly string[], SceneOptions]>([
  ['a file', 'current/d/new', {}],
  ['a file, itself a link', 'link', {}],
  ['a file of a group', ['current/d/new', 'other'], {}],
  ['a file in a directory', 'current/d', {}],
  ['a file in a tree', 'current/d', { recursive: true }],
  ['a file in a tree, itself a link', 'links', { recursive: true }],
  ['a file, after its link was retargeted', 'retargeted/d/new', {}],
])('%s that is created behind links which led nowhere', async (_, target, options) => {
  const scene = new ScriptedScene();
  for (const directory of ['r0/d', 'r1', 'links']) mkdirSync(scene.at(directory), { recursive: true });
  symlinkSync('r1', scene.at('current'));
  symlinkSync('r0', scene.at('retargeted'));
  writeFileSync(scene.at('r0/d/new'), 'old');
  symlinkSync('r1/d/new', scene.at('link'));
  symlinkSync('../r1/d/new', scene.at('links/new'));
  writeFileSync(scene.at('other'), 'other');
  const paths = typeof target === 'string' ? scene.at(target) : target.map((path) => scene.at(path));
  await scene.watch(paths, options);
  symlinkSync('r1', scene.at('next'));
  renameSync(scene.at('next'), scene.at('retargeted'));
  await scene.hint();
  mkdirSync(scene.at('r1/d'));
  await scene.hint();
  reports(scene);
  const file = scene.at('r1/d/new');
  for (const text of ['', 'half', ' and half']) {
    appendFileSync(file, text);
    scene.backend.hint(file);
    await scene.pass(20);
  }
  expect(reports(scene).filter((report) => /new|link/.test(report))).toEqual([]);
  await scene.pass(1_000);
  expect(reports(scene).at(-1)).toMatch(/(?:new|link|retargeted)=half and half$/);
});

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

/** The first write can be read, but has not returned, so that no event reports it. */
const unfinished = Object.entries<[string | readonly string[], SceneOptions]>({
  file: ['d/file', {}],
  group: [['d/file', 'other'], {}],
  directory: ['d', {}],
  tree: ['d', { recursive: true }],
}).flatMap(([kind, [target, options]]) =>
  (['in one turn', 'in two turns', 'for the first time'] as const).map(
    (events) => [kind, events, target, options] as const,
  ),
);

test.each(unfinished)(
  'a %s: what is created again %s is not reported while its first write is under way',
  async (_, events, target, options) => {
    const scene = new ScriptedScene();
    const { backend } = scene;
    mkdirSync(scene.at('d'));
    writeFileSync(scene.at('other'), 'other');
    const file = scene.at('d/file');
    if (events !== 'for the first time') writeFileSync(file, 'old');
    await scene.watch(
      typeof target === 'string' ? scene.at(target) : target.map((path) => scene.at(path)),
      options,
    );
    await scene.watcher.check();
    reports(scene);
    if (events === 'in two turns') {
      rmSync(file);
      await scene.hint(file);
      await scene.pass(5);
    } else if (events === 'in one turn') {
      rmSync(file);
      backend.hint(file);
    }
    writeFileSync(file, 'half');
    backend.hint(file);
    await scene.pass(20);
    expect(reports(scene)).toEqual([]);
    appendFileSync(file, ' and half');
    backend.hint(file);
    await scene.pass(1_000);
    expect(reports(scene)).toEqual([expect.stringMatching(/file=half and half/)]);
  },
);

test.each<[string, string, boolean, SceneOptions?]>([
  ['a file', 'file', true],
  ['a file that was missing', 'file', false],
  ['a file in a directory', '.', true],
  ['a file in a tree that was missing', '.', false, { recursive: true }],
])(
  '%s that is removed and written again all the time is reported as it stands',
  async (_, target, isThere, options) => {
    const scene = new ScriptedScene();
    const file = scene.at('file');
    if (isThere) writeFileSync(file, 'old');
    await watch(scene, target, { maxSettleMs: 1_000, ...options });
    const reported: string[] = [];
    for (let count = 0; count < 100; count += 1) {
      rmSync(file, { force: true });
      await scene.hint(file);
      await scene.pass(10);
      writeFileSync(file, `${count}`);
      await scene.hint(file);
      await scene.pass(20);
      reported.push(...reports(scene));
    }
    // Never as gone.
    expect(reported).toEqual([expect.stringMatching(/^file=\d+$/), expect.stringMatching(/^file=\d+$/)]);
  },
);

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

test.each([false, true])(
  'a directory is not reported before the first of its files is complete, recursive: %s',
  async (recursive) => {
    const scene = new ScriptedScene();
    mkdirSync(scene.at('d'));
    // An empty one waits longer than others.
    writeFileSync(scene.at('d/file'), '');
    await scene.watch(scene.at('d'), { recursive });
    expect(reports(scene)).toEqual(['file=']);
    rmSync(scene.at('d'), { recursive: true });
    await scene.settle();
    mkdirSync(scene.at('d'));
    await scene.settle();
    expect(scene.watcher.current).toMatchObject({ kind: recursive ? 'tree' : 'directory', files: new Map() });
  },
);

test('a link that is retargeted twice in a row is one change, although one file is complete at once', async () => {
  const scene = new ScriptedScene();
  const later = Date.now() / 1_000 + 1;
  for (const directory of ['r1', 'r2', 'r3']) {
    mkdirSync(scene.at(directory));
    for (const name of ['a', 'b']) writeFileSync(scene.at(`${directory}/${name}`), directory);
  }
  // Written since the link was made.
  for (const file of ['r2/a', 'r2/b', 'r3/b']) utimesSync(scene.at(file), later, later);
  symlinkSync('r1', scene.at('current'));
  await watch(scene, 'current');
  for (const directory of ['r2', 'r3']) {
    symlinkSync(directory, scene.at('next'));
    renameSync(scene.at('next'), scene.at('current'));
    await scene.hint(scene.at('current'));
    await scene.pass(40);
  }
  await scene.pass(100);
  expect(reports(scene)).toEqual(['a=r3 b=r3']);
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
