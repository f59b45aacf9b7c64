/** A mount whose server answers late, wrongly or never: the process and the watcher's `close()` do not depend on it. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ResilientWatcher, type ResilientWatcherOptions } from 'resilient-watcher';
import { FakeClock, KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, onTestFinished, test } from 'vitest';

import { errorCodeOf } from '../../src/core/errors/errors.js';
import { errno } from '../support/errno.js';
import { deviceHere, fsWith, type Called, type Place } from '../support/intercepted-fs.js';
import { ScriptedScene } from '../support/scripted-scene.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const targets: Record<string, [(volume: string) => string | string[], ResilientWatcherOptions?]> = {
  'a key': [(volume) => join(volume, 'a')],
  'a volume': [(volume) => volume],
  'a group': [(volume) => [join(volume, 'a'), join(volume, 'b')]],
  'a directory': [(volume) => join(volume, '..data/')],
  'a tree': [(volume) => volume, { recursive: true }],
};

/** The server of the mount on which everything is. */
class Server {
  isDead = false;
  /** What each call fails with; undefined: it is answered. */
  failure: 'EIO' | 'ESTALE' | undefined;
  pending = 0;
  most = 0;
  synchronous: string[] = [];
  readonly #unanswered: (() => void)[] = [];

  get unanswered(): number {
    return this.#unanswered.length;
  }

  readonly fs;

  constructor(place: Place | (() => readonly string[])) {
    this.fs = fsWith({ each: (call) => this.#answer(call) }, place);
    onTestFinished(() => this.revive());
  }

  revive(): void {
    this.isDead = false;
    for (const answer of this.#unanswered.splice(0)) answer();
  }

  async #wait(): Promise<void> {
    if (this.isDead) await new Promise<void>((resolve) => this.#unanswered.push(resolve));
    else await new Promise((resolve) => setImmediate(resolve));
  }

  #answer({ name, args, isSynchronous, make }: Called): unknown {
    if (isSynchronous) {
      this.synchronous.push(`${name} ${String(args[0])}`);
      return make();
    }
    // An open file is read and closed in one turn of the mount.
    this.pending += 1;
    this.most = Math.max(this.most, this.pending);
    return this.#wait().then(() => {
      this.pending -= 1;
      if (this.failure) throw errno(this.failure, String(args[0]));
      return make();
    });
  }
}

interface Watched {
  readonly server: Server;
  readonly volume: KubeletVolume;
  readonly watcher: ResilientWatcher;
  readonly clock: FakeClock;
  readonly events: string[];
}

function watched(target: string, place: Place): Watched {
  const server = new Server(place);
  const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  volume.publish({ a: '1', b: '1' });
  const [pathOf, options] = targets[target] ?? [String];
  const clock = new FakeClock();
  const { fs } = server;
  const watcher = new ResilientWatcher(pathOf(volume.directory), { fs, clock, backend: 'poll', ...options });
  onTestFinished(() => watcher.close());
  const events: string[] = [];
  watcher.on('change', ({ current }) => {
    events.push([...current.files.values()].map(({ content }) => String(content)).join());
  });
  watcher.on('unreadable', ({ error }) => events.push(String(errorCodeOf(error))));
  watcher.on('readable', () => events.push('readable'));
  return { server, volume, watcher, clock, events };
}

/** Lets time pass, and the server answer. */
async function until(clock: FakeClock, isSo: () => boolean): Promise<void> {
  for (let turns = 0; !isSo() && turns < 5_000; turns += 1) await clock.advance(10);
  expect(isSo()).toBe(true);
}

const places = ['remote', 'unknown'] as const;
const cases = Object.keys(targets).flatMap((target) => places.map((place) => ({ target, place })));

describe.each(cases)('$target on a mount that is $place', ({ target, place }) => {
  test('slow answers are awaited, one call at a time, and none is synchronous', async () => {
    const { server, volume, watcher, clock, events } = watched(target, place);
    await watcher.start();
    volume.publish({ a: '2', b: '2' });
    await until(clock, () => events.length === 2);
    expect(events.map((event) => new Set(event.split(',')))).toEqual([new Set(['1']), new Set(['2'])]);
    expect(server.most).toBe(1);
    expect(server.synchronous).toEqual([]);
  });

  test.each(['start', 'check'] as const)(
    'a %s that is never answered delays neither timers nor close()',
    async (moment) => {
      const { server, watcher, clock, events } = watched(target, place);
      if (moment === 'check') await watcher.start();
      server.isDead = true;
      const started = watcher.start().catch(() => undefined);
      await clock.advance(10_000);
      // The event loop goes on.
      await new Promise((resolve) => setTimeout(resolve, 1));
      expect(server.pending).toBe(1);
      const before = [...events];
      await watcher.close();
      await started;
      server.revive();
      await clock.advance(10_000);
      expect(events).toEqual(before);
      expect(server.synchronous).toEqual([]);
    },
  );

  test('EIO is unreadable, and readable when it is over', async () => {
    const { server, watcher, clock, events } = watched(target, place);
    await watcher.start();
    server.failure = 'EIO';
    await until(clock, () => events.length === 2);
    server.failure = undefined;
    await until(clock, () => events.length === 3);
    expect(events.slice(1)).toEqual(['ERR_TARGET_IO', 'readable']);
  });

  test('ESTALE for longer is unreadable, nothing is missing', async () => {
    const { server, watcher, clock, events } = watched(target, place);
    await watcher.start();
    server.failure = 'ESTALE';
    await until(clock, () => events.length === 2);
    await clock.advance(10_000);
    server.failure = undefined;
    await until(clock, () => events.length === 3);
    expect(events.slice(1)).toEqual(['ERR_TARGET_IO', 'readable']);
    expect(watcher.current?.files.size).toBeGreaterThan(0);
  });

  test('ESTALE for less than missingGraceMs is not reported', async () => {
    const { server, watcher, clock, events } = watched(target, place);
    await watcher.start();
    const { checks } = watcher.status();
    server.failure = 'ESTALE';
    await until(clock, () => watcher.status().checks > checks);
    server.failure = undefined;
    await clock.advance(10_000);
    await watcher.check();
    expect(events).toHaveLength(1);
  });
});

test('no call is synchronous on a mount point whose name is not UTF-8', async () => {
  const root = temporaryDirectory();
  const point = Buffer.concat([Buffer.from(`${root}/`), Buffer.of(0xff)]);
  mkdirSync(point);
  writeFileSync(Buffer.concat([point, Buffer.from('/file')]), 'content');
  const table = [
    `1 0 0:1 / / rw - tmpfs x rw`,
    `2 1 ${deviceHere()} / ${point.toString('latin1')} rw - fuse x rw`,
  ];
  const server = new Server(() => table);
  const watcher = new ResilientWatcher(`${root}/\udcff/file`, { fs: server.fs, clock: new FakeClock() });
  onTestFinished(() => watcher.close());
  await watcher.start();
  expect(String(watcher.current?.content)).toBe('content');
  expect(server.synchronous.filter((call) => call.includes('\ufffd'))).toEqual([]);
});

test('of watchers of one dead mount one call is pending, and none waits in close()', async () => {
  const server = new Server('unknown');
  const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  volume.publish({ a: '1', b: '1' });
  server.isDead = true;
  const watchers = Object.values(targets).map(
    ([pathOf, options]) =>
      new ResilientWatcher(pathOf(volume.directory), {
        fs: server.fs,
        backend: 'poll',
        clock: new FakeClock(),
        ...options,
      }),
  );
  const starts = watchers.map((watcher) => watcher.start().catch(() => undefined));
  await expect.poll(() => server.pending).toBe(1);
  await new Promise((resolve) => setImmediate(resolve));
  expect(server.most).toBe(1);
  await Promise.all(watchers.map((watcher) => watcher.close()));
  await Promise.all(starts);
});

describe('in a mount table with mounts on mounts', () => {
  type Line = [id: number, parent: number, point: string, type: string];
  interface MountedScene {
    path: string;
    server: Server;
    watcher: ResilientWatcher;
    clock: FakeClock;
    mount: (...line: Line) => void;
  }

  /** `a/b/file` below a directory, and the table: the id, that of the parent, the mount point below it, the type. */
  const mounted = (...table: Line[]): MountedScene => mountedOn('0:1', ...table);

  /** @param device of the file system of the directory, as the table has it. */
  function mountedOn(device: string, ...table: Line[]): MountedScene {
    const root = temporaryDirectory();
    mkdirSync(join(root, 'a/b'), { recursive: true });
    const path = join(root, 'a/b/file');
    writeFileSync(path, 'content');
    const server = new Server(() => [
      `1 0 ${device} / / rw - ext4 x rw`,
      ...table.map(
        ([id, parent, point, type]) => `${id} ${parent} 0:${id} / ${join(root, point)} rw - ${type} x rw`,
      ),
    ]);
    const clock = new FakeClock();
    const watcher = new ResilientWatcher(path, { fs: server.fs, clock });
    onTestFinished(() => watcher.close());
    return { path, server, watcher, clock, mount: (...line) => void table.push(line) };
  }
  const synchronousIn = ({ server, path }: { server: Server; path: string }): string[] =>
    server.synchronous.filter((call) => call.includes(path));

  test.each<[string, [number, number, string, string][], string]>([
    [
      'a disk that a server on its parent covers',
      [
        [2, 1, 'a/b', 'tmpfs'],
        [3, 1, 'a', 'fuse'],
      ],
      'degraded',
    ],
    [
      'a disk that a server covers at its mount point',
      [
        [3, 2, 'a/b', 'nfs4'],
        [2, 1, 'a/b', 'tmpfs'],
      ],
      'degraded',
    ],
    [
      'a disk on a mount that a server covers',
      [
        [2, 1, 'a', 'tmpfs'],
        [3, 2, 'a/b', 'tmpfs'],
        [4, 2, 'a', 'nfs'],
      ],
      'degraded',
    ],
    [
      'a disk that is mounted on a server',
      [
        [2, 1, 'a', 'fuse'],
        [3, 2, 'a/b', 'tmpfs'],
      ],
      'degraded',
    ],
  ])('no call is synchronous on %s', async (_, table, state) => {
    const scene = mounted(...table);
    await scene.watcher.start();
    expect(synchronousIn(scene)).toEqual([]);
    expect(scene.watcher.state).toBe(state);
  });

  test.each<[string, [number, number, string, string][]]>([
    [
      'on its parent',
      [
        [2, 1, 'a/b', 'fuse'],
        [3, 1, 'a', 'tmpfs'],
      ],
    ],
    [
      'on it',
      [
        [2, 1, 'a', 'fuse'],
        [3, 2, 'a', 'tmpfs'],
        [4, 3, 'a/b', 'tmpfs'],
      ],
    ],
  ])('a disk that covers a server, mounted %s, is no server', async (_, table) => {
    const scene = mounted(...table);
    await scene.watcher.start();
    expect(synchronousIn(scene)).not.toEqual([]);
    expect(scene.watcher.state).toBe('watching');
  });

  test('a call on a server that does not answer is given up when a disk is mounted on the parent', async () => {
    const { watcher, server, mount } = mounted([2, 1, 'a/b', 'fuse']);
    server.isDead = true;
    const started = watcher.start();
    await expect.poll(() => server.unanswered).toBe(1);
    mount(3, 1, 'a', 'tmpfs');
    await started;
    expect(String(watcher.current?.content)).toBe('content');
  });

  const [unknownDevice, hereAnyway] = ['0:1', deviceHere()];
  test.each([
    ['at the next event, if its device is new', unknownDevice, 0],
    ['after the next resync, if no other device is seen', hereAnyway, 5_000],
  ])('a server that is mounted after the start is not looked at synchronously %s', async (_, device, ms) => {
    const scene = mountedOn(device);
    const { watcher, server, path, clock, mount } = scene;
    await watcher.start();
    mount(2, 1, 'a/b', 'fuse');
    let count = 0;
    const synchronousCalls = async (): Promise<readonly string[]> => {
      await clock.advance(ms);
      server.synchronous = [];
      const { checks } = watcher.status();
      writeFileSync(path, `content ${(count += 1)}`);
      await expect.poll(() => watcher.status().checks).toBeGreaterThan(checks);
      return synchronousIn(scene);
    };
    await expect.poll(synchronousCalls).toEqual([]);
  });
});

test('a target that is missing is polled once a file server is mounted where it is looked for', async () => {
  const scene = new ScriptedScene();
  const table = ['1 1 0:1 / / rw - ext4 disk rw'];
  const fs = fsWith({ each: ({ make }) => make() }, () => table);
  Object.assign(scene.backend, { needsKernelEvents: true });
  await scene.watch(scene.file, { fs });
  expect(scene.watcher.status().backend).toBe('scripted');
  table.push(`2 1 ${deviceHere()} / ${scene.root} rw - nfs4 server rw`);
  // The table is read at most every 100 ms of the real time.
  const hinted = async (): Promise<unknown> => {
    await scene.hint();
    return scene.watcher.status().backend;
  };
  await expect.poll(hinted).toBe('poll');
  expect(scene.events.at(-1)).toBe('degraded: ERR_BACKEND_NO_EVENTS');
});
