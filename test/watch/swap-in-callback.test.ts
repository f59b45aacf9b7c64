/** The swap of a key is answered in the callback of the event, and the check that follows proves the answer. */
import { mkdirSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ResilientWatcher } from 'resilient-watcher';
import { FakeClock, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';

async function stage() {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  volume.publish({ key: 'one' });
  const backend = new ScriptedBackend();
  const watcher = new ResilientWatcher(volume.path('key'), { clock: new FakeClock(), backend });
  onTestFinished(() => watcher.close());
  await watcher.start();
  const reported: string[] = [];
  watcher.on('change', ({ current }) => reported.push(current.content?.toString() ?? '(missing)'));
  return { volume, backend, watcher, reported };
}

test('the first event after a swap reports it, whatever entry of the volume it names, and the check adds nothing', async () => {
  for (const name of ['..data', '..data_tmp', 'key', 'other', '.']) {
    const { volume, backend, watcher, reported } = await stage();
    volume.publish({ key: 'two' });
    backend.hint(volume.path(name));
    expect(reported).toEqual(['two']);
    backend.hint(volume.path('..data'));
    await watcher.idle();
    expect(reported).toEqual(['two']);
    expect(watcher.status().revision).toBe(volume.revision);
  }
});

test('events before the swap change nothing, and the one that names the link reports it', async () => {
  const { volume, backend, watcher, reported } = await stage();
  backend.hint(volume.path('..data_tmp'));
  volume.publish({ key: 'two' });
  backend.hint(volume.path('key'));
  expect(reported).toEqual([]);
  backend.hint(volume.path('..data'));
  expect(reported).toEqual(['two']);
  await watcher.idle();
  expect(reported).toEqual(['two']);
});

test('a swap back before the check is reported by the check', async () => {
  const { volume, backend, watcher, reported } = await stage();
  volume.publish({ key: 'two' });
  backend.hint(volume.path('..data'));
  volume.publish({ key: 'one' });
  backend.hint(volume.path('..data'));
  await watcher.idle();
  expect(reported).toEqual(['two', 'one']);
});

test('a key that no longer leads through the swapped link is left to the check', async () => {
  const { volume, backend, watcher, reported } = await stage();
  unlinkSync(volume.path('key'));
  mkdirSync(volume.path('..other'));
  writeFileSync(volume.path('..other/key'), 'elsewhere');
  symlinkSync('..other/key', volume.path('..next'));
  renameSync(volume.path('..next'), volume.path('key'));
  for (const step of volume.steps({ key: 'two' })) if (step.name === 'rename') break;
  backend.hint(volume.path('..data'));
  expect(reported).toEqual([]);
  await watcher.idle();
  expect(reported).toEqual(['elsewhere']);
});

test('a listener that closes the watcher in the callback ends it', async () => {
  const { volume, backend, watcher, reported } = await stage();
  const closed = new Promise<void>((resolve) => {
    watcher.once('change', () => void watcher.close().then(resolve));
  });
  volume.publish({ key: 'two' });
  backend.hint(volume.path('..data'));
  await closed;
  expect(reported).toEqual(['two']);
  expect(watcher.state).toBe('closed');
  expect(backend.subscriptions).toBe(0);
});
