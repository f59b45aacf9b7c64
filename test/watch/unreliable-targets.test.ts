/** Targets that change all the time, give no events, or do not answer at all. */
import { mkdirSync, renameSync, statSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import type { ResilientWatcherOptions } from 'resilient-watcher';
import { ScriptedBackend } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { fsWith } from '../support/intercepted-fs.js';
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

/** A file whose directory is replaced after each reading of it, while it is busy. */
function busyDirectory() {
  const directory = join(temporaryDirectory(), 'd');
  const path = join(directory, 'file');
  const make = (): void => {
    mkdirSync(directory);
    writeFileSync(path, 'good');
  };
  make();
  const busy = { path, isBusy: false, replaced: 0 };
  const fs = fsWith({
    each: ({ name }) => {
      if (name !== 'close' || !busy.isBusy) return;
      renameSync(directory, `${directory}.${busy.replaced}`);
      busy.replaced += 1;
      make();
    },
  });
  return Object.assign(busy, { fs });
}

/** A watcher of a link to a local file, or to one on a file system without events; it has not been started. */
function watchedLink(target: string) {
  const directory = temporaryDirectory();
  const link = join(directory, 'link');
  writeFileSync(join(directory, 'local'), 'local');
  symlinkSync(target, link);
  const relink = (to: string): void => {
    unlinkSync(link);
    symlinkSync(to, link);
  };
  const fs = fsWith({ each: ({ make }) => make() }, [LOCAL, remote('/proc')]);
  const backend = Object.assign(new ScriptedBackend(), { needsKernelEvents: true });
  return { ...watched({ fs, backend }, link), backend, relink };
}

test('a directory that is replaced after each look at its file is not unreadable, and is listened to in the end', async () => {
  const busy = busyDirectory();
  const options = { fs: busy.fs, missingGraceMs: 0, resyncIntervalMs: 0 };
  const { clock, watcher, events, backend } = watched(options, busy.path);
  await watcher.start();
  busy.isBusy = true;
  for (let hints = 0; hints < 2; hints += 1) {
    backend.hint();
    await watcher.idle();
  }
  expect(busy.replaced).toBeGreaterThan(2);
  busy.isBusy = false;
  await clock.advance(1_000);
  await watcher.idle();
  expect(events).toEqual(['change good by start']);
  const { ino } = statSync(dirname(busy.path));
  expect(backend.directories.at(-1)?.identity).toContain(String(ino));
});

test('a directory that is replaced all the time once more is looked at again as soon as the first time', async () => {
  const busy = busyDirectory();
  const options = { fs: busy.fs, resyncIntervalMs: 0 };
  const { clock, watcher, reported, backend } = watched(options, busy.path);
  const look = async (): Promise<void> => {
    backend.hint();
    await watcher.idle();
  };
  await watcher.start();
  busy.isBusy = true;
  await look();
  await look();
  // Until the delays are the longest.
  await clock.advance(10_000);
  busy.isBusy = false;
  await clock.advance(1_000);
  busy.isBusy = true;
  await look();
  await look();
  busy.isBusy = false;
  writeFileSync(busy.path, 'better');
  // Another look, and the quiet period.
  await clock.advance(100);
  await watcher.idle();
  expect(reported).toEqual(['good', 'better']);
});

test('on a file system without events the target is polled, and the backend is not retried', async () => {
  const fs = fsWith({}, 'remote');
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
    const { clock, watcher, events, relink } = watchedLink('/proc/version');
    await watcher.start();
    expect(watcher.status()).toMatchObject({ state: 'degraded', backend: 'poll' });
    relink('local');
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

test.runIf(process.platform === 'linux')(
  'degraded is told once, also when another reason follows',
  async () => {
    const { clock, backend, watcher, events, relink } = watchedLink('local');
    await watcher.start();
    backend.refuse(...Array.from({ length: 100 }, () => new Error('no')));
    backend.fail();
    await clock.advance(1_000);
    const since = clock.monotonic();
    expect(watcher.status()).toMatchObject({ state: 'degraded', degraded: { code: 'ERR_BACKEND_DOWN' } });
    relink('/proc/version');
    await clock.advance(10_000);
    expect(watcher.status()).toMatchObject({
      state: 'degraded',
      degraded: { code: 'ERR_BACKEND_NO_EVENTS' },
    });
    backend.accept();
    relink('local');
    await clock.advance(10_000);
    expect(watcher.state).toBe('watching');
    expect(events.filter((event) => event.startsWith('degraded'))).toEqual(['degraded: ERR_BACKEND_DOWN']);
    const [, degradedMs] =
      / after (\d+)$/.exec(events.findLast((event) => event.startsWith('recovered')) ?? '') ?? [];
    // Counted from the first reason.
    expect(Number(degradedMs)).toBeGreaterThan(10_000);
    expect(Number(degradedMs)).toBeLessThanOrEqual(clock.monotonic() - since + 1_000);
  },
);

test.runIf(process.platform === 'linux')(
  'what failed before a target was on a file system without events does not delay its backend after that',
  async () => {
    const { clock, backend, watcher, events, relink } = watchedLink('local');
    await watcher.start();
    const untilWatching = async (): Promise<void> => {
      while (watcher.state !== 'watching') await clock.advance(100);
    };
    backend.refuse(...Array.from({ length: 5 }, () => new Error('no')));
    backend.fail();
    await untilWatching();
    relink('/proc/version');
    backend.hint();
    await watcher.idle();
    expect(watcher.status().degraded?.code).toBe('ERR_BACKEND_NO_EVENTS');
    relink('local');
    await untilWatching();
    expect(events.filter((event) => event.startsWith('restart')).at(-1)).toMatch(/^restart 1 after 50:/);
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
      const fs = fsWith(
        {
          each: ({ args, isSynchronous, make }) => {
            if (isSynchronous && `${String(args[0])}/`.startsWith(`${point}/`)) asked.push(String(args[0]));
            return make();
          },
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
