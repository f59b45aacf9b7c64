/** Many watchers, few native watches, and none left behind: counted by the kernel. */
import { join } from 'node:path';

import { ResilientWatcher } from 'resilient-watcher';
import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { inotifyWatches } from '../support/inotify.js';
import { linuxOnly } from '../support/namespace.js';
import { rounds } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

linuxOnly();

/** The volume, and each directory above it but the root, which cannot be renamed. A revision never changes. */
function watchesNeeded(volume: KubeletVolume): number {
  return volume.directory.split('/').slice(1).length;
}

class Watched {
  readonly watcher: ResilientWatcher;
  #reported: string | undefined;
  #wake: (() => void) | undefined;

  constructor(path: string) {
    this.watcher = new ResilientWatcher(path, {
      backend: 'fs',
      resyncIntervalMs: 0,
      missingGraceMs: 600_000,
    });
    this.watcher.on('change', ({ current }) => {
      this.#reported = String(current.content);
      this.#wake?.();
    });
    onTestFinished(() => this.watcher.close());
  }

  async reports(content: string): Promise<void> {
    while (this.#reported !== content) await new Promise<void>((resolve) => (this.#wake = resolve));
    await this.watcher.idle();
  }
}

const KEYS = rounds(100, 1_000);

test(`${KEYS} watchers on ${KEYS} keys of a volume cost what one costs`, async () => {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  const keys = Array.from({ length: KEYS }, (_, number) => `key-${number}`);
  const publish = (version: string): void =>
    void volume.publish(Object.fromEntries(keys.map((key) => [key, `${version} of ${key}`])));
  publish('v1');
  expect(inotifyWatches()).toBe(0);
  const watched = keys.map((key) => ({ key, it: new Watched(volume.path(key)) }));
  await Promise.all(watched.map(({ it }) => it.watcher.start()));
  expect(inotifyWatches()).toBe(watchesNeeded(volume));
  for (const version of ['v2', 'v3']) {
    publish(version);
    await Promise.all(watched.map(({ key, it }) => it.reports(`${version} of ${key}`)));
    expect(inotifyWatches()).toBe(watchesNeeded(volume));
  }
  await Promise.all(watched.map(({ it }) => it.watcher.close()));
  expect(inotifyWatches()).toBe(0);
});

test('many swaps, and a volume that is recreated in between, leave no watch behind', async () => {
  const SWAPS = rounds(30, 200);
  const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  volume.publish({ key: 'v0' });
  const watched = new Watched(volume.path('key'));
  await watched.watcher.start();
  for (let version = 1; version <= SWAPS; version += 1) {
    if (version % 20 === 0) volume.remove();
    volume.publish({ key: `v${version}` });
    await watched.reports(`v${version}`);
    expect(inotifyWatches()).toBe(watchesNeeded(volume));
  }
  await watched.watcher.close();
  // Within the callback of an event libuv keeps the watch of that event until it has delivered the others.
  await expect.poll(inotifyWatches).toBe(0);
});

test('two hundred watchers of fifty volumes, their keys, groups and trees need at most a hundred watches', async () => {
  const root = temporaryDirectory();
  const volumes = Array.from(
    { length: 50 },
    (_, number) => new KubeletVolume(join(root, `volume-${number}`)),
  );
  const publish = (version: string): void => {
    for (const volume of volumes) volume.publish({ 'tls.crt': version, 'conf.d/tls.key': version });
  };
  publish('v1');
  const options = { backend: 'fs', resyncIntervalMs: 0, missingGraceMs: 600_000 } as const;
  const watchers = volumes.flatMap((volume, number) => {
    const next = volumes[(number + 1) % volumes.length] ?? volume;
    return [
      new ResilientWatcher(volume.directory, options),
      new ResilientWatcher(volume.path('tls.crt'), options),
      new ResilientWatcher([volume.path('tls.crt'), volume.path('conf.d/tls.key')], options),
      // A tree watches revisions, too, unless they are ignored.
      number % 2 === 0
        ? new ResilientWatcher([volume.path('tls.crt'), next.path('conf.d/tls.key')], options)
        : new ResilientWatcher(volume.directory, {
            ...options,
            recursive: { ignore: ['..*'] },
          }),
    ];
  });
  const isIn = (watcher: ResilientWatcher, version: string): boolean =>
    [...(watcher.current?.files.values() ?? [])].every(({ content }) => String(content) === version);
  await Promise.all(watchers.map((watcher) => watcher.start()));
  expect(watchers).toHaveLength(200);
  // One a volume, and one for each directory above.
  const needed = 50 + root.split('/').length - 1;
  expect(needed).toBeLessThanOrEqual(100);
  expect(inotifyWatches()).toBe(needed);
  for (const version of ['v2', 'v3']) {
    const told = watchers.map(
      (watcher) =>
        new Promise<void>((resolve) => {
          watcher.on('change', () => isIn(watcher, version) && resolve());
        }),
    );
    publish(version);
    await Promise.all(told);
    for (const watcher of watchers) await watcher.idle();
    expect(inotifyWatches()).toBe(needed);
  }
  await Promise.all(watchers.map((watcher) => watcher.close()));
  expect(inotifyWatches()).toBe(0);
});

test('watchers that are opened and closed, busy or idle, leave no watch behind', async () => {
  const CYCLES = rounds(30, 200);
  const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  volume.publish({ key: 'v0' });
  for (let cycle = 1; cycle <= CYCLES; cycle += 1) {
    const { watcher } = new Watched(volume.path('key'));
    const starting = watcher.start().catch(() => 'closed before it was started');
    if (cycle % 4 !== 0) await starting;
    if (cycle % 2 === 0) volume.publish({ key: `v${cycle}` });
    await watcher.close();
    await starting;
    expect(inotifyWatches()).toBe(0);
  }
});
