/** The table of connection.ts: a backend that is lost, cannot be had, and comes back. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import {
  ResilientWatcher,
  type HintSink,
  type ResilientWatcherOptions,
  type WatchBackend,
} from 'resilient-watcher';
import { expect, onTestFinished, test } from 'vitest';

import { errno } from '../support/errno.js';
import { fsWith, type Called } from '../support/intercepted-fs.js';
import { ScriptedScene } from '../support/scripted-scene.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

/** A watcher of a path, which has not been started. */
function watched(scene: ScriptedScene, path: string, options: ResilientWatcherOptions = {}) {
  const { volume, clock, backend, events } = scene;
  const watcher = scene.create(path, options);
  scene.record();
  return { volume, clock, backend, events, watcher };
}

/** A watcher of a key of a volume, which has not been started. */
function watchedKey(options: ResilientWatcherOptions = {}) {
  const scene = new ScriptedScene();
  scene.volume.publish({ key: 'v1' });
  return watched(scene, scene.volume.path('key'), options);
}

test('a backend that goes down is subscribed again after the first delay, and the watcher checks at once', async () => {
  const { volume, clock, backend, watcher, events } = watchedKey();
  await watcher.start();
  backend.fail(new Error('gone'));
  expect(watcher.state).toBe('recovering');
  volume.publish({ key: 'v2' });
  await clock.advance(50);
  await watcher.idle();
  expect(events).toEqual([
    'change v1 by start',
    'restart 1 after 50: ERR_BACKEND_DOWN',
    'change v2 by restart',
  ]);
  expect(watcher.status()).toMatchObject({
    state: 'watching',
    restarts: 1,
    degraded: null,
    backend: 'scripted',
  });
  expect(backend.subscriptions).toBe(1);
});

test('while the backend is unavailable the target is polled, and `degraded` is emitted once', async () => {
  const { volume, clock, backend, watcher, events } = watchedKey({ pollIntervalMs: 1_000 });
  await watcher.start();
  backend.refuse(...Array.from({ length: 100 }, () => errno('EMFILE')));
  backend.fail(errno('EMFILE'));
  volume.publish({ key: 'v2' });
  await clock.advance(10_000);
  await watcher.idle();
  const restarts = events.filter((event) => event.startsWith('restart'));
  expect(restarts.slice(0, 4)).toEqual([
    'restart 1 after 50: ERR_BACKEND_LIMIT',
    'restart 2 after 100: ERR_BACKEND_LIMIT',
    'restart 3 after 200: ERR_BACKEND_LIMIT',
    'restart 4 after 400: ERR_BACKEND_LIMIT',
  ]);
  expect(events.filter((event) => !event.startsWith('restart'))).toEqual([
    'change v1 by start',
    'degraded: ERR_BACKEND_LIMIT fs.inotify.max_user_instances',
    'change v2 by poll',
  ]);
  expect(watcher.status()).toMatchObject({
    state: 'degraded',
    backend: 'poll',
    degraded: { code: 'ERR_BACKEND_LIMIT', sysctl: 'fs.inotify.max_user_instances' },
    lastError: { name: 'BackendError', code: 'ERR_BACKEND_LIMIT' },
  });

  backend.accept();
  await clock.advance(5_000);
  await watcher.idle();
  expect(events.at(-1)).toMatch(/^recovered by scripted after \d+$/);
  expect(watcher.state).toBe('watching');
  // The resync only: nothing polls any more.
  expect(clock.pending).toBe(1);
  volume.publish({ key: 'v3' });
  backend.hint();
  await watcher.idle();
  expect(events.at(-1)).toBe('change v3 by scripted');
});

test.runIf(process.platform === 'linux')(
  'while the backend is unavailable, its status and each attempt name the newest reason',
  async () => {
    const { clock, backend, watcher } = watchedKey();
    const sysctls = new Set<unknown>();
    watcher.on('restart', ({ error }) => sysctls.add(error.sysctl));
    await watcher.start();
    const watches = Array.from({ length: 100 }, () => errno('ENOSPC'));
    backend.refuse(errno('EMFILE'), errno('EMFILE'), ...watches);
    backend.fail(errno('EMFILE'));
    await clock.advance(10_000);
    expect(watcher.status().degraded?.sysctl).toBe('fs.inotify.max_user_watches');
    expect([...sysctls]).toEqual(['fs.inotify.max_user_instances', 'fs.inotify.max_user_watches']);
  },
);

test('a backend that hangs while its directories are set has failed after 10 s, and close() waits as long', async () => {
  const scene = new ScriptedScene();
  scene.volume.publish({ key: 'v1' });
  const hung = new Promise<never>(() => undefined);
  let isHung = true;
  const backend: WatchBackend = {
    name: 'hanging',
    subscribe: () => ({ setDirectories: () => (isHung ? hung : []), close: () => hung }),
  };
  const options = { backend, pollIntervalMs: 1_000, resyncIntervalMs: 0 };
  const { volume, clock, watcher, events } = watched(scene, scene.volume.path('key'), options);
  const started = watcher.start();
  await clock.advance(10_000);
  await started;
  expect(watcher.status().degraded?.message).toContain('it has not answered for 10 s');
  volume.publish({ key: 'v2' });
  await clock.advance(1_000);
  expect(events).toContain('change v2 by poll');
  isHung = false;
  await clock.advance(20_000);
  expect(watcher.state).toBe('watching');
  const closed = watcher.close();
  await clock.advance(10_000);
  await closed;
});

test('a target whose directories may not be listened to, nor one of them be looked up for a moment, is polled', async () => {
  const scene = new ScriptedScene();
  let isDenied = true;
  const deny = ({ make, args: [path] }: Called): unknown => {
    if (isDenied) throw errno('EACCES', String(path));
    return make();
  };
  const fs = fsWith({
    watch: deny,
    lstat: (called) => (called.args[0] === scene.at('d') ? deny(called) : called.make()),
  });
  const { clock } = scene;
  scene.writeOld('d', ['a']);
  const options = { fs, backend: 'fs', resyncIntervalMs: 0, pollIntervalMs: 1_000 } as const;
  const { watcher } = watched(scene, scene.at('d/a'), options);
  await watcher.start();
  expect(watcher.status()).toMatchObject({ state: 'degraded', degraded: { code: 'ERR_BACKEND_DOWN' } });
  isDenied = false;
  await clock.advance(1_100);
  await watcher.idle();
  expect(watcher.state).toBe('watching');
});

test('close() while directories are being set leaves no timer', async () => {
  const scene = new ScriptedScene();
  scene.volume.publish({ key: 'v1' });
  let ask!: () => void;
  const isAsked = new Promise<void>((resolve) => {
    ask = resolve;
  });
  const setDirectories = (): Promise<never> => {
    ask();
    return new Promise(() => undefined);
  };
  const backend: WatchBackend = { name: 'hanging', subscribe: () => ({ setDirectories, close: () => {} }) };
  const { clock, watcher } = watched(scene, scene.volume.path('key'), { backend });
  const started = expect(watcher.start()).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  await isAsked;
  await watcher.close();
  expect(clock.pending).toBe(0);
  await started;
});

test('while the backend is unavailable for the second time, the target is polled again', async () => {
  const { volume, clock, backend, watcher, events } = watchedKey({
    pollIntervalMs: 1_000,
    resyncIntervalMs: 0,
  });
  await watcher.start();
  for (const key of ['v2', 'v3']) {
    const errors = Array.from({ length: 6 }, () => errno('EMFILE'));
    backend.refuse(...errors);
    backend.fail(errno('EMFILE'));
    volume.publish({ key });
    await clock.advance(1_500);
    await watcher.idle();
    expect(events.some((event) => event.startsWith(`change ${key} by poll`))).toBe(true);
    while (watcher.state !== 'watching') await clock.advance(1_000);
  }
});

test('delays double up to the maximum, with up to 50 % jitter, at the maximum as well', async () => {
  const delays: number[] = [];
  const { clock, backend, watcher } = watchedKey({ random: () => 0.5 });
  watcher.on('restart', ({ delayMs }) => delays.push(delayMs));
  await watcher.start();
  backend.refuse(...Array.from({ length: 12 }, () => new Error('no')));
  backend.fail();
  await clock.advance(60_000);
  expect(delays.slice(0, 10)).toEqual([37.5, 75, 150, 300, 600, 1_200, 2_400, 3_750, 3_750, 3_750]);
  expect(delays).toHaveLength(13);
});

test('a backend that fails immediately each time is not restarted in a loop', async () => {
  const { clock, backend, watcher, events } = watchedKey();
  await watcher.start();
  for (let death = 0; death < 5; death += 1) {
    backend.fail();
    await clock.advance(5_000);
  }
  const delays = events
    .filter((event) => event.startsWith('restart'))
    .map((event) => Number(event.split(' ')[3]?.slice(0, -1)));
  expect(delays).toEqual([50, 100, 200, 400, 800]);
  await clock.advance(5_001);
  backend.fail();
  await clock.advance(50);
  expect(events.at(-1)).toBe('restart 1 after 50: ERR_BACKEND_DOWN');
});

test.each([
  ['a typed limit', errno('ENOSPC'), 'degraded: ERR_BACKEND_LIMIT fs.inotify.max_user_watches'],
  ['a TypeError', new TypeError('not a function'), 'degraded: ERR_BACKEND_DOWN'],
  ['something that is no error', 'oops', 'degraded: ERR_BACKEND_DOWN'],
])(
  'a backend that is unavailable at the start (%s) leads to polling, and the start succeeds',
  async (_, failure, degraded) => {
    const { clock, backend, watcher, events } = watchedKey();
    backend.refuse(failure, failure);
    await watcher.start();
    expect(events).toEqual(['change v1 by start', degraded]);
    await clock.advance(1_000);
    expect(watcher.state).toBe('watching');
    expect(events.at(-1)).toMatch(/^recovered by scripted/);
  },
);

test('attempts to restart never end, and the target is polled meanwhile', async () => {
  const { volume, clock, backend, watcher, events } = watchedKey();
  await watcher.start();
  backend.refuse(...Array.from({ length: 100 }, () => new Error('no')));
  backend.fail();
  await clock.advance(60_000);
  volume.publish({ key: 'v2' });
  await clock.advance(1_000);
  await watcher.idle();
  expect(events).toContain('change v2 by poll');
  await clock.advance(10 * 60_000);
  expect(watcher.state).toBe('watching');
});

test('changes found only by the resync are counted', async () => {
  const { volume, clock, backend, watcher } = watchedKey({ resyncIntervalMs: 5_000 });
  await watcher.start();
  volume.publish({ key: 'v2' });
  await clock.advance(5_000);
  await watcher.idle();
  expect(watcher.status()).toMatchObject({ changes: 2, resyncs: 1 });
  volume.publish({ key: 'v3' });
  backend.hint();
  await watcher.idle();
  expect(watcher.status()).toMatchObject({ changes: 3, resyncs: 1 });
});

test('a resync interval of 0 turns the resync off', async () => {
  const { clock, watcher } = watchedKey({ resyncIntervalMs: 0 });
  await watcher.start();
  expect(clock.pending).toBe(0);
});

test('watches follow the chain of the target', async () => {
  const { volume, backend, watcher } = watchedKey();
  await watcher.start();
  const watched = (): string[] => backend.directories.map(({ path }) => path);
  expect(watched().at(-1)).toBe(volume.directory);
  volume.publish({ key: 'v2' });
  backend.hint();
  await watcher.idle();
  expect(watched().at(-1)).toBe(volume.directory);
  expect(watcher.status().watchedDirectories).toEqual(watched());
  // Only the entries that were consulted matter, and a revision never changes.
  const entries = backend.directories.map((directory) => directory.entries && [...directory.entries].join());
  expect(entries.slice(-2)).toEqual(['volume', 'key,..data']);
  volume.remove();
  backend.hint();
  await watcher.idle();
  expect(watched().at(-1)).toBe(join(volume.directory, '..'));
  const last = backend.directories.at(-1);
  // A volume there might publish it.
  expect([...(last?.entries ?? [])]).toEqual(['volume', '..data']);
});

test('the status is plain data and survives JSON', async () => {
  const { watcher, backend } = watchedKey();
  await watcher.start();
  backend.fail(errno('EMFILE'));
  const status = watcher.status();
  expect(JSON.parse(JSON.stringify(status))).toEqual(status);
  expect(JSON.stringify(status)).not.toContain('v1');
});

test('a backend that gives the same object for every event hides no change', async () => {
  const path = join(temporaryDirectory(), 'file');
  writeFileSync(path, '1');
  let sink: HintSink | undefined;
  const backend: WatchBackend = {
    name: 'own',
    subscribe: (given) => {
      sink = given;
      return { setDirectories: () => [], close: () => undefined };
    },
  };
  const watcher = new ResilientWatcher(path, { backend, settleMs: 0, resyncIntervalMs: 0 });
  onTestFinished(() => watcher.close());
  await watcher.start();
  const event = {};
  for (const text of ['22', '333', '4444']) {
    writeFileSync(path, text);
    // It counts for one turn of the event loop.
    await new Promise(setImmediate);
    sink?.hint({ path, event });
    await expect.poll(() => String(watcher.current?.kind === 'file' && watcher.current.content)).toBe(text);
  }
});
