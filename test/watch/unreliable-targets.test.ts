/** Targets that change all the time, give no events, or do not answer at all. */
import { mkdirSync, renameSync, statSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { ResilientWatcherOptions } from 'resilient-watcher';
import { ScriptedBackend } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { errno, faultyFileSystem, type Fault } from '../support/faulty-file-system.js';
import { interceptedFs, slowFs } from '../support/intercepted-fs.js';
import { ScriptedScene } from '../support/scripted-scene.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

/** Lines of the mount table. */
const LOCAL = '1 1 0:1 / / rw - ext4 disk rw';
const remote = (point: string): string => `2 1 0:2 / ${point} rw - nfs4 server rw`;

/** A watcher of a path, by default of a file with the text "good"; it has not been started. */
function watched(options: ResilientWatcherOptions = {}, path?: string) {
  const scene = new ScriptedScene();
  const { file, clock, backend, events, reported } = scene;
  writeFileSync(file, 'good');
  const watcher = scene.create(path ?? file, options);
  scene.record();
  return { path: file, clock, backend, events, reported, watcher };
}

test('a target that keeps changing is checked with growing delays, is unreadable after the grace period, and recovers', async () => {
  let fault: Fault | undefined;
  const fs = faultyFileSystem((...call) => fault?.(...call));
  const { path, clock, watcher, events } = watched({ fs, resyncIntervalMs: 0 });
  await watcher.start();
  // The file is found, and gone when it is opened: at every attempt.
  fault = (name) => {
    if (name === 'open') throw errno('ENOENT', path);
  };
  writeFileSync(path, 'better');
  await watcher.check();
  expect(events).toEqual(['change good by start']);
  const checksIn = async (ms: number): Promise<number> => {
    const { checks } = watcher.status();
    await clock.advance(ms);
    await watcher.idle();
    return watcher.status().checks - checks;
  };
  const atFirst = await checksIn(1_000);
  expect(events).toEqual([
    'change good by start',
    expect.stringMatching(/^unreadable: Cannot read ".*": it was replaced during every attempt/),
  ]);
  await checksIn(10_000);
  expect(await checksIn(10_000)).toBeLessThanOrEqual(atFirst * 2);
  expect(watcher.status()).toMatchObject({ target: 'unreadable', lastError: { code: 'ERR_TARGET_IO' } });
  expect(String(watcher.current?.content)).toBe('good');
  fault = undefined;
  await clock.advance(1_000);
  await watcher.idle();
  expect(events.slice(2)).toEqual([
    expect.stringMatching(/^readable after \d+$/),
    expect.stringMatching(/^change better by /),
  ]);
  await clock.advance(60_000);
  expect(clock.pending).toBe(0);
});

test('a directory that is replaced after each look at its file is not unreadable, and is listened to in the end', async () => {
  const directory = join(temporaryDirectory(), 'd');
  const path = join(directory, 'file');
  mkdirSync(directory);
  writeFileSync(path, 'good');
  let replaced: number | undefined;
  const fs = faultyFileSystem((name) => {
    if (name !== 'close' || replaced === undefined) return;
    renameSync(directory, `${directory}.${replaced}`);
    replaced += 1;
    mkdirSync(directory);
    writeFileSync(path, 'good');
  });
  const { clock, watcher, events, backend } = watched({ fs, missingGraceMs: 0, resyncIntervalMs: 0 }, path);
  await watcher.start();
  replaced = 0;
  for (let hints = 0; hints < 2; hints += 1) {
    backend.hint();
    await watcher.idle();
  }
  expect(replaced).toBeGreaterThan(2);
  replaced = undefined;
  await clock.advance(1_000);
  await watcher.idle();
  expect(events).toEqual(['change good by start']);
  const { ino } = statSync(directory);
  expect(backend.directories.at(-1)?.identity).toContain(String(ino));
});

test('`current` stays undefined until the first contents are reported, also for a listener of `readable`', async () => {
  let isReadable = false;
  const fs = faultyFileSystem((name) => {
    if (name === 'open' && !isReadable) throw errno('EACCES', '');
  });
  const { clock, watcher } = watched({ fs });
  const seen: unknown[] = [];
  for (const event of ['unreadable', 'readable', 'change'] as const) {
    watcher.on(event, () => seen.push([event, watcher.current?.kind]));
  }
  await watcher.start();
  await clock.advance(10_000);
  isReadable = true;
  await watcher.check();
  await clock.advance(10_000);
  expect(seen).toEqual([
    ['unreadable', undefined],
    ['readable', undefined],
    ['change', 'file'],
  ]);
});

test('on a file system without events the target is polled, and the backend is not retried', async () => {
  const fs = slowFs();
  const backend = Object.assign(new ScriptedBackend(), { needsKernelEvents: true });
  const { path, clock, watcher, events } = watched({ fs, backend });
  await watcher.start();
  expect(events).toEqual(['degraded: ERR_BACKEND_NO_EVENTS', 'change good by start']);
  writeFileSync(path, 'better');
  for (let second = 0; second < 60; second += 1) {
    await clock.advance(1_000);
    await watcher.idle();
  }
  expect(events.slice(2)).toEqual(['change better by poll']);
  expect(watcher.status()).toMatchObject({ state: 'degraded', backend: 'poll', restarts: 0 });
  expect(backend.subscriptions).toBe(0);
});

test.runIf(process.platform === 'linux')(
  'a target that leaves a file system without events is watched natively again',
  async () => {
    const directory = temporaryDirectory();
    const link = join(directory, 'link');
    symlinkSync('/proc/version', link);
    writeFileSync(join(directory, 'local'), 'local');
    const fs = interceptedFs(({ make }) => make(), [LOCAL, remote('/proc')]);
    const backend = Object.assign(new ScriptedBackend(), { needsKernelEvents: true });
    const { clock, watcher, events } = watched({ fs, backend }, link);
    await watcher.start();
    expect(watcher.status()).toMatchObject({ state: 'degraded', backend: 'poll' });
    unlinkSync(link);
    symlinkSync('local', link);
    await clock.advance(1_000);
    await watcher.idle();
    await clock.advance(50);
    await watcher.idle();
    expect(events.slice(2)).toEqual([
      'change local by poll',
      expect.stringMatching(/^restart 1 after/),
      expect.stringMatching(/^recovered by scripted after/),
    ]);
    expect(watcher.status()).toMatchObject({ state: 'watching', backend: 'scripted' });
  },
);

// A FUSE or NFS volume is a mount point itself, and a subPath mount is a single file: neither holds the last component.
test.runIf(process.platform === 'linux')(
  'a mount at the target, or of a file in it, is accessed synchronously only if it is local',
  async () => {
    const directory = temporaryDirectory();
    const inside = join(directory, 'key');
    writeFileSync(inside, 'good');
    for (const [point, path, options] of [
      [directory, directory, {}],
      [directory, directory, { recursive: true }],
      [inside, inside, {}],
      [inside, directory, {}],
      [inside, directory, { recursive: true }],
    ] as const) {
      const asked: string[] = [];
      const fs = interceptedFs(
        ({ args, isSynchronous, make }) => {
          if (isSynchronous && `${String(args[0])}/`.startsWith(`${point}/`)) asked.push(String(args[0]));
          return make();
        },
        [LOCAL, remote(point)],
      );
      const backend = Object.assign(new ScriptedBackend(), { needsKernelEvents: true });
      const { clock, watcher } = watched({ fs, backend, ...options }, path);
      await watcher.start();
      // Of a directory with a mounted file only the resync hears.
      const backendNow = point === inside && path === directory ? 'scripted' : 'poll';
      expect(watcher.status().backend).toBe(backendNow);
      await clock.advance(5_000);
      await watcher.check();
      expect(asked).toEqual([]);
      await watcher.close();
    }
  },
);
