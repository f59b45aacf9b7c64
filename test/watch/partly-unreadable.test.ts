import { mkdirSync, rmSync, writeFileSync } from 'node:fs';

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
