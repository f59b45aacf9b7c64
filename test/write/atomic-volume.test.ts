import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';

import { AtomicVolume, type AtomicVolumeOptions, type VolumeEntry } from 'resilient-watcher';
import { FakeClock } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { temporaryName } from '../../src/write/sweep.js';
import { errno } from '../support/errno.js';
import { fsWith, withoutDescriptor, type Called } from '../support/intercepted-fs.js';
import { aDayLater, later } from '../support/later.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const revisionsIn = (directory: string): string[] =>
  readdirSync(directory).filter((name) => /^\.\.\d{4}_/.test(name));

const modeOf = (path: string): string => (lstatSync(path).mode & 0o7777).toString(8);

async function contentsOf(volume: AtomicVolume): Promise<Record<string, string>> {
  const { files } = await volume.read();
  return Object.fromEntries([...files].map(([key, bytes]) => [key, bytes.toString()]));
}

test('the volume is missing until it is written; then it is laid out as kubelet does, whatever the umask', async () => {
  const umask = process.umask(0o077);
  try {
    const directory = join(temporaryDirectory(), 'a/volume');
    const clock = new FakeClock(Date.UTC(2006, 0, 2, 15, 4, 5));
    const volume = new AtomicVolume(directory, { createDirectory: true, clock, random: () => 0.123456789 });
    expect(existsSync(directory)).toBe(false);
    await expect(new AtomicVolume(directory).write({})).rejects.toMatchObject({
      code: 'ERR_WRITE_NO_DIRECTORY',
    });
    const revision = '..2006_01_02_15_04_05.123456789';
    const files = { 'tls.crt': 'crt', 'tls.key': { data: 'key', mode: 0o400 }, 'd/e': Buffer.from('deep') };
    expect(await volume.write(files)).toEqual({ changed: true, revision });
    expect(readdirSync(directory).sort()).toEqual([revision, '..data', 'd', 'tls.crt', 'tls.key']);
    expect(readlinkSync(join(directory, '..data'))).toBe(revision);
    expect(readlinkSync(join(directory, 'tls.key'))).toBe('..data/tls.key');
    const modes = ['', 'tls.crt', 'tls.key', 'd', 'd/e'].map((key) => modeOf(join(directory, revision, key)));
    expect(modes).toEqual(['755', '644', '400', '755', '644']);
  } finally {
    process.umask(umask);
  }
});

test('equal files cause no new revision; other bytes, a mode or an owner alone do', async () => {
  const directory = temporaryDirectory();
  const volume = new AtomicVolume(directory);
  const changes = async (files: Record<string, VolumeEntry>): Promise<boolean> =>
    (await volume.write(files)).changed;
  expect(await changes({ a: '1', b: '2' })).toBe(true);
  const before = lstatSync(directory, { bigint: true }).ctimeNs;
  expect(await changes({ b: '2', a: '1' })).toBe(false);
  expect(lstatSync(directory, { bigint: true }).ctimeNs).toBe(before);
  expect(await changes({ a: '1', b: { data: '2', mode: 0o600 } })).toBe(true);
  expect(await changes({ a: '1' })).toBe(true);
  expect(await changes({ a: '2' })).toBe(true);
  expect(await changes({})).toBe(true);
  expect(await changes({})).toBe(false);
  expect(readdirSync(directory)).toHaveLength(2);
  if (process.getuid?.() !== 0) return;
  expect(await changes({ a: { data: '', owner: { uid: 12, gid: 34 } } })).toBe(true);
  expect(await changes({ a: { data: '', owner: { uid: 12, gid: 34 } } })).toBe(false);
  expect(lstatSync(join(directory, '..data/a'))).toMatchObject({ uid: 12, gid: 34 });
});

test('links that are missing, wrong or left over are repaired although the files are equal; other entries stay', async () => {
  const directory = temporaryDirectory();
  const volume = new AtomicVolume(directory);
  await volume.write({ a: '1', b: '2' });
  unlinkSync(join(directory, 'a'));
  unlinkSync(join(directory, 'b'));
  symlinkSync('somewhere', join(directory, 'b'));
  symlinkSync('..data/vanished', join(directory, 'vanished'));
  writeFileSync(join(directory, 'lost+found'), '');
  expect((await volume.write({ a: '1', b: '2' })).changed).toBe(false);
  expect(readFileSync(join(directory, 'a'), 'utf8') + readFileSync(join(directory, 'b'), 'utf8')).toBe('12');
  expect(readdirSync(directory).filter((name) => !name.startsWith('..'))).toEqual(['a', 'b', 'lost+found']);
});

test.each([
  ['/absolute', /relative/],
  ['a/../b', /must not contain ".."/],
  ['..a', /must not begin with ".."/],
  ['./..a', /must not begin with ".."/],
  ['', /must name a file/],
  ['.', /must name a file/],
  ['a\0', /NUL/],
  ['x'.repeat(256), /at most 255 bytes/],
  [`${'x'.repeat(255)}/`.repeat(17), /at most 4096 bytes/],
])('the key %j is refused before anything is touched', async (key, message) => {
  const directory = temporaryDirectory();
  await expect(new AtomicVolume(directory).write({ ok: '', [key]: 'secret' })).rejects.toThrow(message);
  expect(readdirSync(directory)).toEqual([]);
});

test('keys are cleaned as kubelet does; equal keys, or one below another, are refused', async () => {
  const volume = new AtomicVolume(temporaryDirectory());
  await volume.write({ 'a//b/./c': '1', ['x'.repeat(255)]: '2', 'a/..b': '3' });
  expect(Object.keys(await contentsOf(volume)).sort()).toEqual(['a/..b', 'a/b/c', 'x'.repeat(255)].sort());
  await expect(volume.write({ 'a/b': '', 'a//b': '' })).rejects.toThrow(/twice/);
  await expect(volume.write({ a: '', 'a/b/c': '' })).rejects.toThrow(/cannot be a file and the directory/);
});

test.each([
  [{ a: 1 }, /key "a" must hold a string/],
  [{ a: { data: '', mode: -1 } }, /key "a": property "mode" must be /],
  [{ a: { data: '', mode: 555 } }, /key "a": property "mode" must be .*, in octal \(0o555, not 555\)/],
  [
    { a: { data: '', mod: 0o400 } },
    /key "a": unknown property "mod"; the nearest one is "mode"; known are data, mode, owner/,
  ],
  [{ a: { data: '', owner: 'root' } }, /key "a": property "owner" must be /],
  ['text', /files must be a plain object or a Map/],
  [null, /files must be a plain object or a Map/],
  [['a'], /files must be a plain object or a Map/],
  [new Set(['a']), /files must be a plain object or a Map/],
  [new Date(), /files must be a plain object or a Map/],
  [new URL('file:///a'), /files must be a plain object or a Map/],
  [new Map([[1, 'a']]), /files must be a plain object or a Map/],
  [{ revision: undefined, files: new Map() }, /key "revision" must hold/],
])('a value that is not a set of files is refused: %j', async (files, message) => {
  const volume = new AtomicVolume(temporaryDirectory());
  await volume.write({ key: 'old' });
  const writing = volume.write(files as never);
  await expect(writing).rejects.toThrow(TypeError);
  await expect(writing).rejects.toThrow(message);
  expect(await contentsOf(volume)).toEqual({ key: 'old' });
});

test('the result of read() can be written again; a Map is accepted like an object', async () => {
  const volume = new AtomicVolume(temporaryDirectory());
  await volume.write({ a: '1', 'd/e': '2' });
  const { revision, files } = await volume.read();
  expect(await volume.write(files)).toEqual({ changed: false, revision });
  const other = new AtomicVolume(temporaryDirectory());
  await other.write(new Map<string, VolumeEntry>([...files, ['f', { data: '3', mode: 0o600 }]]));
  expect(await contentsOf(other)).toEqual({ a: '1', 'd/e': '2', f: '3' });
  await other.write(Object.assign(Object.create(null) as object, { a: '1' }));
  expect(await contentsOf(other)).toEqual({ a: '1' });
});

test('a volume is started by its first use, has a status, and cannot be reopened', async () => {
  const directory = temporaryDirectory();
  const clock = new FakeClock();
  const volume = new AtomicVolume(directory, { clock, graceMs: 1000, name: 'tls' });
  const idle = {
    name: 'tls',
    state: 'idle',
    directory,
    revision: null,
    writtenAt: null,
    retiredRevisions: 0,
  };
  expect(JSON.parse(JSON.stringify(volume))).toEqual({ ...idle, lastError: null });
  await volume.write({ key: 'secret 1' });
  const { revision } = await volume.write({ key: 'secret 2' });
  await expect(volume.write({ 'key/..': '' })).rejects.toThrow(TypeError);
  mkdirSync(join(directory, 'obstacle'));
  await expect(volume.write({ obstacle: '' })).rejects.toMatchObject({ code: 'ERR_WRITE_NOT_FILE' });
  expect(volume.status()).toMatchObject({
    state: 'running',
    revision,
    writtenAt: clock.now(),
    retiredRevisions: 1,
    lastError: { name: 'WriteError', code: 'ERR_WRITE_NOT_FILE', at: clock.now() },
  });
  expect(JSON.stringify(volume) + inspect(volume)).not.toContain('secret');
  expect(clock.pending).toBe(1);
  const last = volume.write({ key: '3' });
  await volume.close();
  expect((await last).changed).toBe(true);
  expect(clock.pending).toBe(0);
  expect(volume.state).toBe('closed');
  for (const use of [volume.write({}), volume.read(), volume.clear(), volume.start()]) {
    await expect(use).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  }
  expect(await contentsOf(new AtomicVolume(directory))).toEqual({ key: '3' });
});

test.each([
  [{ graceMs: -1 }, RangeError],
  [{ mode: '644' }, TypeError],
  [{ grace: 5 }, TypeError],
] as const)('an invalid option is refused when the volume is constructed: %j', (options, error) => {
  expect(() => new AtomicVolume('/nowhere', options as AtomicVolumeOptions)).toThrow(error);
});

test('a replaced revision stays for graceMs, and is then removed without another write', async () => {
  const directory = temporaryDirectory();
  const clock = new FakeClock();
  const volume = new AtomicVolume(directory, { clock, graceMs: 1000 });
  const revisions: string[] = [];
  for (const data of ['1', '2', '3']) {
    revisions.push((await volume.write({ key: data })).revision);
    await clock.advance(400);
  }
  expect(readFileSync(join(directory, revisions[0] ?? '', 'key'), 'utf8')).toBe('1');
  expect(revisionsIn(directory)).toHaveLength(3);
  await clock.advance(300);
  while (revisionsIn(directory).length > 2) await clock.advance(0);
  expect(revisionsIn(directory)).not.toContain(revisions[0]);
  await clock.advance(1000);
  while (revisionsIn(directory).length > 1) await clock.advance(0);
  expect(revisionsIn(directory)).toEqual([revisions[2]]);
  expect(await contentsOf(volume)).toEqual({ key: '3' });
  while (clock.pending > 0) await clock.advance(1000);
});

test('after clear() no replaced revision is kept for its readers any more', async () => {
  const directory = temporaryDirectory();
  const clock = new FakeClock();
  const volume = new AtomicVolume(directory, { clock, graceMs: 1000 });
  for (const data of ['1', '2']) await volume.write({ key: data });
  expect(volume.status().retiredRevisions).toBe(1);
  await volume.clear();
  expect(revisionsIn(directory)).toEqual([]);
  expect(volume.status()).toMatchObject({ revision: null, retiredRevisions: 0 });
  expect(clock.pending).toBe(0);
});

test('clear() rejects if the directory is there and cannot be opened', async () => {
  const fs = fsWith({
    open: () => {
      throw errno('EACCES');
    },
  });
  const volume = new AtomicVolume(temporaryDirectory(), { fs });
  await expect(volume.clear()).rejects.toMatchObject({ name: 'WriteError', step: 'open-directory' });
});

test('the pending revision of another writer is left alone for a day; what was not announced, and what kubelet left, is removed', async () => {
  const directory = temporaryDirectory();
  const volume = new AtomicVolume(directory);
  const announce = (pending: string, revision: string): void => {
    symlinkSync(revision, join(directory, pending));
    mkdirSync(join(directory, revision));
  };
  const dead = temporaryName('link');
  announce(dead, '..2026_01_01_00_00_00.2');
  await later(23, () => volume.write({ key: '0' }));
  expect(readdirSync(directory)).toContain('..2026_01_01_00_00_00.2');
  await aDayLater(() => volume.write({ key: '0.5' }));
  expect(readdirSync(directory)).toHaveLength(3);
  const live = temporaryName('link');
  announce(live, '..2026_01_01_00_00_00.1');
  mkdirSync(join(directory, '..2026_01_01_00_00_00.4'));
  symlinkSync('..2026_01_01_00_00_00.3', join(directory, '..data_tmp'));
  mkdirSync(join(directory, '..2026_01_01_00_00_00.3/deep'), { recursive: true });
  const { revision } = await volume.write({ key: '1' });
  expect(readdirSync(directory).sort()).toEqual(
    [revision, '..2026_01_01_00_00_00.1', '..data', live, 'key'].sort(),
  );
  // The other one publishes: its revision is whole, and the links follow it.
  writeFileSync(join(directory, '..2026_01_01_00_00_00.1/other'), 'theirs');
  renameSync(join(directory, live), join(directory, '..data'));
  expect(await contentsOf(volume)).toEqual({ other: 'theirs' });
  expect((await volume.write({ other: { data: 'theirs' } })).changed).toBe(false);
  expect(readdirSync(directory).filter((name) => !name.startsWith('..'))).toEqual(['other']);
});

test('when another process swaps while the links are created, they match the revision that is published in the end', async () => {
  const directory = temporaryDirectory();
  const theirs = '..2026_01_01_00_00_00.1';
  mkdirSync(join(directory, theirs));
  writeFileSync(join(directory, theirs, 'theirs'), '');
  let isDone = false;
  const fs = fsWith(
    {
      symlink: ({ args, make }) => {
        make();
        if (args[0] !== '..data/ours' || isDone) return;
        isDone = true;
        symlinkSync(theirs, join(directory, 'swap'));
        renameSync(join(directory, 'swap'), join(directory, '..data'));
      },
    },
    'remote',
  );
  await new AtomicVolume(directory, { fs }).write({ ours: '' });
  expect(readdirSync(directory).filter((name) => !name.startsWith('..'))).toEqual(['theirs']);
});

test('read() returns no revision and no files where nothing is published, and rejects for a file', async () => {
  const directory = temporaryDirectory();
  const nothing = { revision: undefined, files: new Map() };
  for (const path of ['missing', '.']) {
    expect(await new AtomicVolume(join(directory, path)).read()).toEqual(nothing);
  }
  writeFileSync(join(directory, '..data'), '');
  writeFileSync(join(directory, 'file'), 'of somebody else');
  expect(await new AtomicVolume(directory).read()).toEqual(nothing);
  await expect(new AtomicVolume(join(directory, 'file')).read()).rejects.toMatchObject({
    name: 'TargetError',
    code: 'ERR_TARGET_PATH',
  });
});

test('clear() removes what was published and nothing else; the directory stays the same', async () => {
  const directory = temporaryDirectory();
  const volume = new AtomicVolume(directory, { graceMs: 60_000, clock: new FakeClock() });
  const { ino } = lstatSync(directory);
  await volume.write({ a: '1', 'd/e': '2' });
  await volume.write({ a: '2' });
  writeFileSync(join(directory, 'other'), '');
  await volume.clear();
  expect(readdirSync(directory)).toEqual(['other']);
  expect(lstatSync(directory).ino).toBe(ino);
  await volume.clear();
  rmSync(directory, { recursive: true });
  await volume.clear();
});

test('the order of calls: files, then their directories, then the swap, then the volume; clear() syncs before a revision goes', async () => {
  const directory = temporaryDirectory();
  const opened = new Map<number, string>();
  const log: string[] = [];
  const nameOf = (path: string): string => {
    const name = withoutDescriptor(path).slice(directory.length);
    return name.replace(/\/\.\.\d{4}[^/]*/, '/REVISION').replace(/-.*/, '-…');
  };
  const note = (text: string, { make }: Called): unknown => {
    log.push(text);
    return make();
  };
  const traced = fsWith(
    {
      open: ({ args, make }) => {
        const fd = make() as number;
        opened.set(fd, nameOf(String(args[0])));
        return fd;
      },
      fsync: (call) => note(`fsync ${opened.get(call.args[0] as number) ?? ''}`, call),
      rename: (call) => note(`rename ${nameOf(String(call.args[1]))}`, call),
      symlink: (call) => note(`symlink ${nameOf(String(call.args[1]))}`, call),
      unlink: (call) => note(`unlink ${nameOf(String(call.args[0]))}`, call),
      rmdir: (call) => note(`rmdir ${nameOf(String(call.args[0]))}`, call),
    },
    'remote',
  );
  const volume = new AtomicVolume(directory, { fs: traced });
  await volume.write({ a: '1', 'd/e': '2' });
  expect(log).toEqual([
    'symlink /..data_tmp-…',
    'fsync /REVISION/a',
    'fsync /REVISION/d/e',
    'fsync /REVISION/d',
    'fsync /REVISION',
    'rename /..data',
    'symlink /a',
    'symlink /d',
    'fsync ',
  ]);
  log.length = 0;
  await volume.clear();
  expect(log).toEqual([
    'unlink /..data',
    'unlink /a',
    'unlink /d',
    'fsync ',
    'unlink /REVISION/a',
    'unlink /REVISION/d/e',
    'rmdir /REVISION/d',
    'rmdir /REVISION',
  ]);
});
