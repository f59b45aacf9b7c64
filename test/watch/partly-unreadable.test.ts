import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ResilientWatcher, type Change } from 'resilient-watcher';
import { FakeClock, ScriptedBackend } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { errno, faultyFileSystem } from '../support/faulty-file-system.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

test('a directory in a tree that becomes unreadable keeps its files; that and its recovery are reported', async () => {
  const root = temporaryDirectory();
  mkdirSync(join(root, 'closed'));
  writeFileSync(join(root, 'closed', 'file'), 'kept');
  let isClosed = false;
  const fs = faultyFileSystem((name, [path]) => {
    if (isClosed && name === 'scandir' && path === join(root, 'closed')) throw errno('EACCES', path);
  });
  const clock = new FakeClock();
  const backend = new ScriptedBackend();
  const watcher = new ResilientWatcher(root, { recursive: true, backend, clock, fs, resyncIntervalMs: 0 });
  const events: unknown[] = [];
  watcher.on('change', ({ added, changed, removed }: Change) =>
    events.push([...added, ...changed, ...removed]),
  );
  watcher.on('unreadable', ({ error }) => events.push(error.message));
  watcher.on('readable', () => events.push('readable'));
  onTestFinished(() => watcher.close());
  await watcher.start();

  const settle = async (): Promise<unknown[]> => {
    backend.hint();
    for (let second = 0; second < 3; second += 1) {
      await watcher.idle();
      await clock.advance(1_000);
    }
    await watcher.idle();
    return events.splice(0);
  };
  expect(await settle()).toEqual([['closed/file']]);
  // As when a directory is created and then given to its reader.
  isClosed = true;
  backend.hint();
  await watcher.idle();
  isClosed = false;
  expect(await settle()).toEqual([]);
  isClosed = true;
  expect(await settle()).toEqual([expect.stringMatching(/^Cannot read ".*closed": permission denied/)]);
  expect(watcher.status().target).toBe('unreadable');
  writeFileSync(join(root, 'file'), 'reported');
  expect(await settle()).toEqual([['file']]);
  isClosed = false;
  expect(await settle()).toEqual(['readable']);
  rmSync(join(root, 'closed'), { recursive: true });
  expect(await settle()).toEqual([['closed/file']]);
});
