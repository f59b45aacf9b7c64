/** Something is at the path, but it cannot be read: reported once, heals by itself, and the last content is kept. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import {
  ResilientWatcher,
  TargetError,
  type FileSystem,
  type ResilientWatcherOptions,
} from 'resilient-watcher';
import { FakeClock, ScriptedBackend } from 'resilient-watcher/testing';
import { describe, expect, onTestFinished, test } from 'vitest';

import { forEachCallOfCheck } from '../support/each-call.js';
import { errno } from '../support/errno.js';
import { fsWith, type Intervention, type Place } from '../support/intercepted-fs.js';
import type { SceneOptions } from '../support/scene.js';
import { ScriptedScene } from '../support/scripted-scene.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

/** What `statfs` calls them. */
const EXT4 = 0xef53;
const NFS = 0x6969;

/** A watcher of a file in a directory of its own, which has not been started. */
function watchedFile(options: ResilientWatcherOptions = {}) {
  const scene = new ScriptedScene();
  const path = scene.at('etc/app.yaml');
  mkdirSync(dirname(path));
  const watcher = scene.create(path, options);
  scene.record();
  return { path, watcher, errors: scene.errors, settle: () => scene.settle() };
}

/** Faults that a test switches on. */
function switchable(): { fs: FileSystem; set: (fault: Intervention | undefined) => void } {
  let fault: Intervention | undefined;
  return { fs: fsWith({ each: (call) => fault?.(call) }), set: (next) => (fault = next) };
}

describe('on real files', () => {
  test.each<[string, (path: string) => void, string, RegExp]>([
    [
      'a pipe in its place',
      (path) => execFileSync('mkfifo', [path]),
      'ERR_TARGET_PATH',
      /it is neither a regular file nor a directory$/,
    ],
    [
      'a link to itself',
      (path) => symlinkSync('app.yaml', path),
      'ERR_TARGET_PATH',
      /the chain of links is a loop, or longer than 40 links$/,
    ],
    [
      'a file where a directory should be',
      (path) => {
        rmSync(dirname(path), { recursive: true });
        writeFileSync(dirname(path), '');
      },
      'ERR_TARGET_PATH',
      /^Cannot read ".*etc": a path component is not a directory$/,
    ],
  ])('%s', async (_, arrange, code, message) => {
    const { path, watcher, errors, settle } = watchedFile();
    writeFileSync(path, 'good');
    await watcher.start();
    rmSync(path);
    arrange(path);
    await settle();
    await settle();
    expect(errors).toHaveLength(1);
    expect(errors[0]).toBeInstanceOf(TargetError);
    expect(errors[0]).toMatchObject({ code, message: expect.stringMatching(message) as string });
    expect(watcher.status()).toMatchObject({ target: 'unreadable', state: 'watching', lastError: { code } });
    expect(String(watcher.current?.content)).toBe('good');

    rmSync(dirname(path), { recursive: true });
    mkdirSync(dirname(path));
    writeFileSync(path, 'healed');
    await settle();
    expect(String(watcher.current?.content)).toBe('healed');
    expect(watcher.status().target).toBe('file');
    expect(errors).toHaveLength(1);
  });

  test('41 links in a row are too many, 40 are not', async () => {
    const { path, watcher, errors, settle } = watchedFile();
    writeFileSync(join(dirname(path), 'link-0'), 'reached');
    for (let link = 1; link <= 40; link += 1)
      symlinkSync(`link-${link - 1}`, join(dirname(path), `link-${link}`));
    symlinkSync('link-40', path);
    await watcher.start();
    expect(errors).toMatchObject([{ code: 'ERR_TARGET_PATH' }]);
    rmSync(path);
    symlinkSync('link-39', path);
    await settle();
    expect(String(watcher.current?.content)).toBe('reached');
  });
});

describe('with a file system that fails', () => {
  test.each<[string, Intervention, string]>([
    ['no permission to open', ({ name, args: [path] }) => denied(name === 'open', path), 'ERR_TARGET_ACCESS'],
    [
      'no permission on the way',
      ({ name, args: [path] }) => denied(name === 'lstat' && ends(path, 'app.yaml'), path),
      'ERR_TARGET_ACCESS',
    ],
    ['an I/O error while reading', ({ name }) => fail(name === 'read', 'EIO'), 'ERR_TARGET_IO'],
    [
      'an I/O error on the way',
      ({ name, args: [path] }) => fail(name === 'lstat' && ends(path, 'etc'), 'EIO'),
      'ERR_TARGET_IO',
    ],
  ])('%s is one error, and heals', async (_, fault, code) => {
    const { fs, set } = switchable();
    const { path, watcher, errors, settle } = watchedFile({ fs });
    writeFileSync(path, 'good');
    await watcher.start();
    set(fault);
    writeFileSync(path, 'unreadable');
    await settle();
    await settle();
    expect(errors).toMatchObject([{ name: 'TargetError', code }]);
    expect(String(watcher.current?.content)).toBe('good');
    set(undefined);
    await settle();
    expect(String(watcher.current?.content)).toBe('unreadable');
    expect(watcher.status().target).toBe('file');
  });

  test.each<[string, readonly string[], SceneOptions]>([
    ['a key', ['a'], {}],
    ['a group of keys', ['a', 'b'], {}],
    ['a group of a key and a file', ['a', '../file'], {}],
    ['a volume', ['.'], {}],
    ['a tree', ['..'], { recursive: true }],
  ])('whichever call fails once for %s, the next check heals it', async (_, names, options) => {
    await forEachCallOfCheck({
      options,
      prepare: (scene) => {
        scene.volume.publish({ a: '1', b: '1' });
        writeFileSync(scene.at('file'), 'f');
        return names.map((name) => join(scene.volume.directory, name));
      },
      fs: (isTheOne) => fsWith({ each: ({ name }) => fail(isTheOne() && name !== 'close', 'EIO') }),
      change: (scene) => {
        scene.volume.publish({ a: '2', b: '2' });
      },
      verify: (scene, { at }) => {
        expect(scene.errors, `at call ${at}`).toEqual([]);
        expect(scene.reported.at(-1), `at call ${at}`).toContain('2');
      },
    });
  });

  test('an unreadable target that recovers unchanged is `readable` again, and reported again when it fails again', async () => {
    const { fs, set } = switchable();
    const { path, watcher, errors, settle } = watchedFile({ fs });
    writeFileSync(path, 'good');
    await watcher.start();
    for (const times of [1, 2]) {
      set(({ name }) => fail(name === 'lstat', 'EIO'));
      await settle();
      expect(errors).toHaveLength(times);
      expect(watcher.status().target).toBe('unreadable');
      set(undefined);
      await settle();
      expect(watcher.status().target).toBe('file');
    }
  });

  test('a directory that may once not be looked up is listened to again after the next resync', async () => {
    const { fs, set } = switchable();
    const scene = new ScriptedScene();
    scene.volume.publish({ key: 'old' });
    const options = { fs, resyncIntervalMs: 5_000 };
    const watcher = scene.create(scene.at('volume/key'), options);
    scene.record();
    await watcher.start();
    set(({ name, args: [path] }) => denied(name === 'lstat' && ends(path, 'volume'), path));
    await scene.pass(10_000);
    set(undefined);
    // Nobody hears of it, and the old revision stays.
    renameSync(scene.at('volume/..data'), scene.at('volume/..old'));
    scene.volume.publish({ key: 'new' });
    await scene.pass(10_000);
    expect(String(watcher.current?.content)).toBe('new');
  });

  test('an error that does not come from the file system is reported and does not end watching', async () => {
    const { fs, set } = switchable();
    const { path, watcher, errors, settle } = watchedFile({ fs });
    writeFileSync(path, 'good');
    await watcher.start();
    set(() => {
      throw new TypeError('a fault of the injected file system');
    });
    await settle();
    expect(errors[0]?.message).toBe('a fault of the injected file system');
    set(undefined);
    writeFileSync(path, 'better');
    await settle();
    expect(String(watcher.current?.content)).toBe('better');
  });
});

describe('where the event loop could hang', () => {
  test.each<[place: Place, type: number, calls: 'asynchronous' | 'synchronous']>([
    ['remote', NFS, 'asynchronous'],
    ['unknown', NFS, 'asynchronous'],
    ['hidden', NFS, 'asynchronous'],
    ['disk', EXT4, 'synchronous'],
    ['hidden', EXT4, 'synchronous'],
  ])('where the mount table says "%s" and statfs %x, calls are %s', async (place, type, calls) => {
    const synchronous: string[] = [];
    const fs = fsWith(
      {
        each: ({ name, isSynchronous, make }) => {
          if (name === 'statfs') return { type };
          if (isSynchronous) synchronous.push(name);
          return make();
        },
      },
      place,
    );
    const { path, watcher, settle } = watchedFile({ fs });
    writeFileSync(path, 'one');
    await watcher.start();
    writeFileSync(path, 'two');
    await settle();
    expect(String(watcher.current?.content)).toBe('two');
    if (calls === 'asynchronous') expect(synchronous).toEqual([]);
    else expect(synchronous).toContain('read');
  });

  test.runIf(process.platform === 'linux')(
    'a swap to a revision on another file system makes no synchronous calls there',
    async () => {
      const asked: string[] = [];
      const fs = fsWith(
        {
          each: ({ name, args, isSynchronous, make }) => {
            if (isSynchronous && String(args[0]).startsWith('/proc/')) asked.push(name);
            return make();
          },
        },
        ['1 1 0:1 / / rw - ext4 disk rw', '2 1 0:2 / /proc rw - nfs4 server rw'],
      );
      const directory = temporaryDirectory();
      const publish = (revision: string, fill: (path: string) => void): void => {
        const path = join(directory, revision);
        mkdirSync(path);
        writeFileSync(join(path, 'own'), revision);
        fill(path);
        symlinkSync(revision, join(directory, 'next'));
        renameSync(join(directory, 'next'), join(directory, '..data'));
      };
      publish('..2024_01_01_00_00_00.1', () => undefined);
      const backend = new ScriptedBackend();
      const watcher = new ResilientWatcher(directory, {
        backend,
        clock: new FakeClock(),
        fs,
      });
      onTestFinished(() => watcher.close());
      await watcher.start();
      publish('..2024_01_01_00_00_00.2', (path) => symlinkSync('/proc/version', join(path, 'far')));
      backend.hint(join(directory, '..data'));
      await watcher.idle();
      expect([...(watcher.current?.files.keys() ?? [])].sort()).toEqual(['far', 'own']);
      expect(asked).toEqual([]);
    },
  );
});

function ends(path: unknown, name: string): boolean {
  return String(path).endsWith(`/${name}`);
}

function denied(when: boolean, path: unknown): void {
  fail(when, 'EACCES', path);
}

function fail(when: boolean, code: string, path: unknown = ''): void {
  if (when) throw errno(code, String(path));
}

/** A file system on which every call for the file of the scene fails in this way; undefined: it does not fail. */
const failing = ({ file }: ScriptedScene, codeNow: () => string | undefined): FileSystem =>
  fsWith({
    each: ({ args: [path] }) => {
      const code = path === file ? codeNow() : undefined;
      if (code !== undefined) throw errno(code, file);
    },
  });

test('another reason why a target cannot be read is told, too, and `readable` counts from the first one', async () => {
  const scene = new ScriptedScene();
  writeFileSync(scene.file, 'text');
  let code: string | undefined;
  const fs = failing(scene, () => code);
  await scene.watch(scene.file, { settleMs: 50, missingGraceMs: 500, fs });
  const times: number[] = [];
  for (const name of ['unreadable', 'readable'] as const)
    scene.watcher.on(name, () => void times.push(scene.clock.monotonic()));
  for (code of ['EACCES', 'EIO', undefined]) await scene.settle();
  expect(scene.errors).toMatchObject([{ code: 'ERR_TARGET_ACCESS' }, { code: 'ERR_TARGET_IO' }]);
  expect(times).toHaveLength(3);
  const [first = 0, , last = 0] = times;
  expect(scene.events.at(-1)).toBe(`readable after ${last - first}`);
});

test('a target that could not be read and is gone now is missing, and no longer unreadable', async () => {
  const scene = new ScriptedScene();
  writeFileSync(scene.file, 'text');
  let isDenied = false;
  const fs = failing(scene, () => (isDenied ? 'EACCES' : undefined));
  await scene.watch(scene.file, { settleMs: 50, missingGraceMs: 500, fs });
  isDenied = true;
  await scene.settle();
  expect(scene.watcher.status()).toMatchObject({ target: 'unreadable', changes: 1 });
  isDenied = false;
  rmSync(scene.file);
  await scene.settle();
  expect(scene.watcher.status()).toMatchObject({ target: 'missing', changes: 2 });
  expect(scene.events.filter((event) => event.startsWith('readable'))).toHaveLength(1);
});

test('a target that cannot be read for one reason and then another, in turns, is unreadable after maxSettleMs', async () => {
  const scene = new ScriptedScene();
  writeFileSync(scene.file, 'text');
  let code: string | undefined;
  const fs = failing(scene, () => code);
  await scene.watch(scene.file, { missingGraceMs: 500, maxSettleMs: 1_000, fs });
  for (let round = 0; round < 10; round += 1) {
    code = round % 2 === 0 ? 'EACCES' : 'EIO';
    await scene.hint();
    await scene.pass(300);
  }
  expect(scene.errors).not.toEqual([]);
  expect(scene.watcher.status().target).toBe('unreadable');
});

test('a target that cannot be read stays unreadable while it is gone for less than missingGraceMs', async () => {
  const scene = new ScriptedScene();
  writeFileSync(scene.file, 'text');
  let isDenied = false;
  const fs = failing(scene, () => (isDenied && existsSync(scene.file) ? 'EACCES' : undefined));
  await scene.watch(scene.file, { missingGraceMs: 500, fs });
  isDenied = true;
  await scene.settle();
  rmSync(scene.file);
  await scene.hint();
  await scene.pass(400);
  writeFileSync(scene.file, 'still denied');
  await scene.settle();
  expect(scene.errors).toHaveLength(1);
  expect(scene.events.filter((event) => event.startsWith('readable'))).toEqual([]);
});
