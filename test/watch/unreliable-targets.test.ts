/** Targets that change all the time, give no events, or do not answer at all. */
import { mkdirSync, renameSync, statSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

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

test('a directory that is replaced after each look at its file is not unreadable, and is listened to in the end', async () => {
  const directory = join(temporaryDirectory(), 'd');
  const path = join(directory, 'file');
  mkdirSync(directory);
  writeFileSync(path, 'good');
  let replaced: number | undefined;
  const fs = fsWith({
    each: ({ name }) => {
      if (name !== 'close' || replaced === undefined) return;
      renameSync(directory, `${directory}.${replaced}`);
      replaced += 1;
      mkdirSync(directory);
      writeFileSync(path, 'good');
    },
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

test('a directory that is replaced all the time once more is looked at again as soon as the first time', async () => {
  const directory = join(temporaryDirectory(), 'd');
  const path = join(directory, 'file');
  mkdirSync(directory);
  writeFileSync(path, 'good');
  let isBusy = false;
  let replaced = 0;
  const fs = fsWith({
    each: ({ name }) => {
      if (name !== 'close' || !isBusy) return;
      renameSync(directory, `${directory}.${replaced}`);
      replaced += 1;
      mkdirSync(directory);
      writeFileSync(path, 'good');
    },
  });
  const { clock, watcher, reported, backend } = watched({ fs, resyncIntervalMs: 0 }, path);
  const look = async (): Promise<void> => {
    backend.hint();
    await watcher.idle();
  };
  await watcher.start();
  isBusy = true;
  await look();
  await look();
  // Until the delays are the longest.
  await clock.advance(10_000);
  isBusy = false;
  await clock.advance(1_000);
  isBusy = true;
  await look();
  await look();
  isBusy = false;
  writeFileSync(path, 'better');
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
    const directory = temporaryDirectory();
    const link = join(directory, 'link');
    symlinkSync('/proc/version', link);
    writeFileSync(join(directory, 'local'), 'local');
    const fs = fsWith({ each: ({ make }) => make() }, [LOCAL, remote('/proc')]);
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

test.runIf(process.platform === 'linux')(
  'degraded is told once, also when another reason follows',
  async () => {
    const directory = temporaryDirectory();
    const link = join(directory, 'link');
    writeFileSync(join(directory, 'local'), 'local');
    symlinkSync('local', link);
    const relink = (to: string): void => {
      unlinkSync(link);
      symlinkSync(to, link);
    };
    const fs = fsWith({ each: ({ make }) => make() }, [LOCAL, remote('/proc')]);
    const backend = Object.assign(new ScriptedBackend(), { needsKernelEvents: true });
    const { clock, watcher, events } = watched({ fs, backend }, link);
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
    const directory = temporaryDirectory();
    const link = join(directory, 'link');
    writeFileSync(join(directory, 'local'), 'local');
    symlinkSync('local', link);
    const relink = (to: string): void => {
      unlinkSync(link);
      symlinkSync(to, link);
    };
    const fs = fsWith({ each: ({ make }) => make() }, [LOCAL, remote('/proc')]);
    const backend = Object.assign(new ScriptedBackend(), { needsKernelEvents: true });
    const { clock, watcher, events } = watched({ fs, backend }, link);
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
