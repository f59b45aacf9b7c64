/** A target that is replaced while it is read is read whole; only what stays away is missing. */

import {
  appendFileSync,
  cpSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

import { readVolume, ResilientWatcher, type FileSystem, type Snapshot } from 'resilient-watcher';
import { FakeClock, KubeletVolume } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import type { Scheduled } from '../../src/core/ports/clock.js';
import { errno } from '../support/errno.js';
import { fsWith } from '../support/intercepted-fs.js';
import { ScriptedScene } from '../support/scripted-scene.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

/** What `statfs` calls them. */
const NFS = 0x6969;
const EXT4 = 0xef53;

function texts({ files }: Snapshot): Record<string, string> {
  return Object.fromEntries([...files].map(([key, { content }]) => [key, String(content)]));
}

/** Its timers are late, as on a busy machine, so that a wait of seconds takes few attempts. */
class LateClock extends FakeClock {
  override schedule(callback: () => void, delayMs: number): Scheduled {
    return super.schedule(callback, delayMs * 20);
  }
}

/** Calls may take long. */
class SlowClock extends FakeClock {
  passedMs = 0;

  override monotonic(): number {
    return super.monotonic() + this.passedMs;
  }
}

/** Reads under fake time; `meanwhile` runs before each step of it. */
async function read(
  path: string | readonly string[],
  {
    fs,
    clock = new FakeClock(),
    meanwhile = () => undefined,
  }: { fs?: FileSystem; clock?: FakeClock; meanwhile?: (ms: number) => unknown } = {},
): Promise<Snapshot> {
  // A process that reads has been running for a while.
  await clock.advance(1_000);
  const reading = new ResilientWatcher(path, { fs, clock, random: () => 0 }).snapshot();
  let snapshot: Snapshot | undefined;
  let failure: unknown;
  reading.then(
    (result) => (snapshot = result),
    (error: unknown) => (failure = error),
  );
  for (let ms = 0; !snapshot && !failure;) {
    // No time passes while calls go through the thread pool, however long that takes.
    if (clock.pending === 0) await new Promise((resolve) => setImmediate(resolve));
    else {
      meanwhile(ms);
      ms += 1;
      await clock.advance(1);
    }
  }
  return reading;
}

function volumeIn(directory: string): { volume: KubeletVolume; unlink: () => void; link: () => void } {
  const volume = new KubeletVolume(join(directory, 'volume'));
  volume.publish({ a: 'content', b: 'content' });
  const data = volume.path('..data');
  const { revision } = volume;
  return {
    volume,
    unlink: () => rmSync(data, { force: true }),
    link: () => symlinkSync(String(revision), data),
  };
}

test.each(['the volume', 'a key', 'a group of keys'] as const)(
  'a volume whose link exists for 2 of every 22 ms is read, not missing: %s',
  async (what) => {
    const { volume, unlink, link } = volumeIn(temporaryDirectory());
    unlink();
    const keys = ['a', 'b'].map((key) => volume.path(key));
    const path = { 'the volume': volume.directory, 'a key': keys[0] ?? '', 'a group of keys': keys }[what];
    const meanwhile = (ms: number): void => {
      if (ms % 22 === 20) link();
      // For the first 1 500 ms the reader is out of step with the swaps, and never meets the link.
      if (ms % 22 === 20 && ms < 1_500) unlink();
      if (ms % 22 === 0 && ms > 1_500) unlink();
    };
    const snapshot = await read(path, { meanwhile });
    expect(new Set(Object.values(texts(snapshot)))).toEqual(new Set(['content']));
  },
);

test('a volume without keys is missing while its link is, not an empty directory', async () => {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  volume.publish({});
  const revision = String(volume.revision);
  unlinkSync(volume.path('..data'));
  const meanwhile = (ms: number): unknown => ms === 60 && symlinkSync(revision, volume.path('..data'));
  const snapshot = await read(volume.directory, { meanwhile });
  expect(snapshot).toMatchObject({ kind: 'volume', revision });
});

test('a target that no link leads to is missing before the longest gap is over', async () => {
  const path = join(temporaryDirectory(), 'file');
  const meanwhile = (ms: number): unknown => ms === 100 && writeFileSync(path, 'late');
  expect((await read(path, { meanwhile })).kind).toBe('missing');
});

test('a volume whose link is away for less than the longest gap is read', async () => {
  const { volume, unlink, link } = volumeIn(temporaryDirectory());
  unlink();
  const meanwhile = (ms: number): unknown => ms === 450 && link();
  expect(texts(await read(volume.directory, { meanwhile }))).toEqual({ a: 'content', b: 'content' });
});

test('a volume that appears without its link is waited for as long as any other gap', async () => {
  const { volume, unlink, link } = volumeIn(temporaryDirectory());
  unlink();
  const away = `${volume.directory}.new`;
  renameSync(volume.directory, away);
  const meanwhile = (ms: number): void => {
    if (ms === 10) renameSync(away, volume.directory);
    if (ms === 450) link();
  };
  expect(texts(await read(volume.directory, { meanwhile }))).toEqual({ a: 'content', b: 'content' });
});

test('a group of which a path leads to a directory is refused, not read in part', async () => {
  const { volume } = volumeIn(temporaryDirectory());
  const reading = read([volume.path('a'), volume.directory]);
  await expect(reading).rejects.toMatchObject({ code: 'ERR_TARGET_DIRECTORY', path: volume.directory });
});

test('a volume is read while one on a server that hangs is, even if the mount table cannot be read', async () => {
  const root = temporaryDirectory();
  const [local, remote] = [join(root, 'local'), join(root, 'remote')];
  for (const directory of [local, remote]) new KubeletVolume(directory).publish({ a: 'content' });
  let asked = 0;
  let answer = (): void => undefined;
  const answered = new Promise<void>((resolve) => (answer = resolve));
  onTestFinished(() => answer());
  const fs = fsWith(
    {
      each: ({ name, args, isSynchronous, make }) => {
        const isRemote = String(args[0]).startsWith(remote);
        if (name === 'statfs') return { type: isRemote ? NFS : EXT4 };
        if (!isRemote || isSynchronous) return make();
        asked += 1;
        return answered.then(() => make());
      },
    },
    'hidden',
  );
  const hanging = readVolume(remote, { fs });
  while (asked === 0) await new Promise((resolve) => setImmediate(resolve));
  const { files } = await readVolume(local, { fs });
  expect(files.get('a')?.content?.toString()).toBe('content');
  answer();
  expect((await hanging).files.size).toBe(1);
});

test('a program that reads a file again and again leaves the event loop its turns', async () => {
  const file = join(temporaryDirectory(), 'file');
  writeFileSync(file, 'content');
  const watcher = new ResilientWatcher(file);
  let turns = 0;
  setImmediate(() => (turns += 1));
  for (let count = 0; count < 2_000 && turns === 0; count += 1) await watcher.snapshot();
  expect(turns).toBe(1);
});

test('a target that is replaced during every attempt is an error after a while', async () => {
  const { volume, unlink } = volumeIn(temporaryDirectory());
  const revisions = [String(volume.revision), '..other'];
  cpSync(volume.path('..data/'), volume.path('..other'), { recursive: true });
  const fs = fsWith({
    each: ({ name }) => {
      if (name !== 'readdir') return;
      unlink();
      symlinkSync(revisions.reverse()[0] ?? '', volume.path('..data'));
    },
  });
  const outcome = await read(volume.directory, { fs, clock: new LateClock() }).catch(
    (error: unknown) => error,
  );
  expect(outcome).toMatchObject({ code: 'ERR_TARGET_IO' });
  expect(String(outcome)).toMatch(/replaced/);
});

test('a file that is replaced by a longer one between the lookup and the read is read whole', async () => {
  const file = join(temporaryDirectory(), 'file');
  writeFileSync(file, 'short');
  writeFileSync(`${file}.new`, 'much longer');
  let isReplaced = false;
  const fs = fsWith({
    each: ({ name, args: [path] }) => {
      if (name !== 'open' || path !== file || isReplaced) return;
      isReplaced = true;
      renameSync(`${file}.new`, file);
    },
  });
  const snapshot = await read(file, { fs });
  expect(isReplaced).toBe(true);
  expect(String(snapshot.kind === 'file' && snapshot.content)).toBe('much longer');
});

test('a file that is written in place between the lookup and the read is read whole', async () => {
  const file = join(temporaryDirectory(), 'file');
  writeFileSync(file, 'short');
  let isWritten = false;
  const fs = fsWith({
    each: ({ name, args: [path] }) => {
      if (name !== 'open' || path !== file || isWritten) return;
      isWritten = true;
      writeFileSync(file, 'much longer');
    },
  });
  const snapshot = await read(file, { fs });
  expect(isWritten).toBe(true);
  expect(String(snapshot.kind === 'file' && snapshot.content)).toBe('much longer');
});

test('a file that is written while a slow disk is read is read again', async () => {
  const file = join(temporaryDirectory(), 'file');
  writeFileSync(file, 'short');
  const clock = new SlowClock();
  let isWritten = false;
  const fs = fsWith({
    each: ({ name, args: [path] }) => {
      if (name !== 'open' || path !== file || isWritten) return;
      isWritten = true;
      clock.passedMs = 2_000;
      writeFileSync(file, 'much longer');
    },
  });
  const snapshot = await read(file, { fs, clock });
  expect(String(snapshot.kind === 'file' && snapshot.content)).toBe('much longer');
});

test('a log that grows at each read holds up what is beside it for half a second at most', async () => {
  const directory = temporaryDirectory();
  const log = join(directory, 'log');
  for (const name of ['log', 'key']) writeFileSync(join(directory, name), 'text');
  const fs = fsWith({
    each: ({ name, args: [path] }) => {
      if (name === 'open' && path === log) appendFileSync(log, 'more');
    },
  });
  const clock = new FakeClock();
  const snapshot = await read(directory, { fs, clock });
  expect(texts(snapshot)).toMatchObject({
    key: 'text',
    log: expect.stringMatching(/^text(more)*$/) as string,
  });
  expect(clock.monotonic()).toBeLessThan(1_000 + 600);
});

test.each(['/victim', '../victim', '..', '..revision'])(
  'a volume whose ..data leads out of it by "%s" is refused, and nothing behind it is read',
  async (target) => {
    const root = temporaryDirectory();
    mkdirSync(join(root, 'victim'));
    writeFileSync(join(root, 'victim', 'secret'), 'secret');
    const volume = join(root, 'volume');
    mkdirSync(volume);
    symlinkSync(target === '/victim' ? join(root, 'victim') : target, join(volume, '..data'));
    if (target === '..revision') symlinkSync('../victim', join(volume, target));
    symlinkSync('..data/secret', join(volume, 'secret'));
    await expect(readVolume(volume)).rejects.toMatchObject({ code: 'ERR_TARGET_LAYOUT' });
  },
);

test('names that are not UTF-8 are distinct keys, and their files are read', async () => {
  const { volume } = volumeIn(temporaryDirectory());
  const bytes = (name: string): Buffer =>
    Buffer.concat([Buffer.from(`${volume.path('..data')}/`), Buffer.from(name, 'latin1')]);
  writeFileSync(bytes('caf\xe9'), 'one');
  writeFileSync(bytes('caf\xea'), 'two');
  writeFileSync(bytes('\xf0\x9f\x98\x80'), 'three');
  const { files } = await readVolume(volume.directory);
  expect(texts({ files } as Snapshot)).toEqual({
    a: 'content',
    b: 'content',
    'caf\udce9': 'one',
    'caf\udcea': 'two',
    '\u{1f600}': 'three',
  });
});

test('a link to a name that is not UTF-8 is followed', async () => {
  const root = temporaryDirectory();
  const target = Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff, 0xfe])]);
  writeFileSync(target, 'content');
  symlinkSync(target.subarray(root.length + 1), join(root, 'link'));
  const snapshot = await read(join(root, 'link'));
  expect(String(snapshot.content)).toBe('content');
});

test('a revision whose directory is replaced by a link while it is read is not followed', async () => {
  const root = temporaryDirectory();
  const { volume } = volumeIn(root);
  mkdirSync(join(root, 'victim'));
  writeFileSync(join(root, 'victim', 'a'), 'victim');
  let done = false;
  const fs = fsWith({
    each: ({ name }) => {
      if (name !== 'readdir' || done) return;
      done = true;
      const revision = volume.path(String(volume.revision));
      renameSync(revision, join(root, 'away'));
      symlinkSync(join(root, 'victim'), revision);
    },
  });
  await expect(readVolume(volume.directory, { fs })).rejects.toMatchObject({ code: 'ERR_TARGET_LAYOUT' });
  rmSync(join(root, 'victim'), { recursive: true });
});

test('a volume that is missing at the first attempts of a read is read', async () => {
  const { volume } = new ScriptedScene();
  volume.publish({ key: 'text' });
  let missing = 3;
  const fs = fsWith({
    each: ({ name, args: [path] }) => {
      if (name !== 'lstat' || path !== volume.directory || missing === 0) return;
      missing -= 1;
      throw errno('ENOENT', volume.directory);
    },
  });
  expect([...(await readVolume(volume.directory, { fs })).files.keys()]).toEqual(['key']);
});
