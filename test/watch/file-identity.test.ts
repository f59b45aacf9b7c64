/** What only a rare look, a rare time or a rare number tells apart. */
import {
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
  type BigIntStats,
} from 'node:fs';

import { readVolume, type FileSystem } from 'resilient-watcher';
import { expect, test, vi } from 'vitest';

import { errno, faultyFileSystem } from '../support/faulty-file-system.js';
import { deviceHere, interceptedFs } from '../support/intercepted-fs.js';
import { ScriptedScene } from '../support/scripted-scene.js';

test('what somebody writes into a published revision is reported when it is complete', async () => {
  const scene = new ScriptedScene();
  scene.volume.publish({ key: 'published' });
  await scene.watch(scene.volume.directory, { resyncIntervalMs: 5_000 });
  const path = scene.volume.path('..data/key');
  writeFileSync(path, 'half');
  await scene.pass(5_000);
  await scene.pass(20);
  writeFileSync(path, 'half and the rest');
  await scene.pass(1_000);
  expect(scene.reported).toEqual(['key=published', 'key=half and the rest']);
});

test.each([
  ['a part of a tree that could not be read', 'readdir', 'd', ['d/file', 'file']],
  ['an entry of a tree that could not be looked up', 'lstat', 'late', ['file', 'late']],
])('%s at first is found by a resync', async (_, call, faulty, files) => {
  const scene = new ScriptedScene();
  mkdirSync(scene.at('d'));
  for (const name of files) writeFileSync(scene.at(name), 'text');
  let isFaulty = true;
  const fs = faultyFileSystem((name, [path]) => {
    if (isFaulty && name === call && path === scene.at(faulty)) throw errno('EIO', scene.at(faulty));
  });
  await scene.watch(scene.root, { recursive: true, fs, resyncIntervalMs: 5_000 });
  // Longer than a directory is listed again only because it has changed.
  await scene.pass(11_000);
  isFaulty = false;
  await scene.pass(6_000);
  expect(scene.reported.at(-1)).toBe(files.map((name) => `${name}=text`).join(' '));
});

test('a file that is there most of the time is not reported as removed by resyncs that find it gone', async () => {
  const scene = new ScriptedScene({ hints: 'poll' });
  for (const name of ['file', 'other']) writeFileSync(scene.at(name), name);
  const intervals = { pollIntervalMs: 60_000, resyncIntervalMs: 1_000 };
  await scene.watch(scene.root, { missingGraceMs: 500, ...intervals });
  await scene.pass(990 - scene.clock.monotonic());
  for (let ms = 990; ms < 2_040; ms += 5) {
    if (ms % 50 === 45) rmSync(scene.at('file'), { force: true });
    else if (ms % 50 === 10) writeFileSync(scene.at('file'), 'file');
    await scene.pass(5);
  }
  expect(scene.reported).toEqual(['file=file other=other']);
});

test('a target that is missing is polled once a file server is mounted where it is looked for', async () => {
  const scene = new ScriptedScene();
  const table = ['1 1 0:1 / / rw - ext4 disk rw'];
  const fs = interceptedFs(
    ({ make }) => make(),
    () => table,
  );
  Object.assign(scene.backend, { needsKernelEvents: true });
  await scene.watch(scene.file, { fs });
  expect(scene.watcher.status().backend).toBe('scripted');
  table.push(`2 1 ${deviceHere()} / ${scene.root} rw - nfs4 server rw`);
  // The table is read at most every 100 ms of the real time.
  await vi.waitFor(async () => {
    await scene.hint();
    expect(scene.watcher.status().backend).toBe('poll');
  });
  expect(scene.events.at(-1)).toBe('degraded: ERR_BACKEND_NO_EVENTS');
});

test('a volume is reported at once after a link to a key without a link was removed', async () => {
  const scene = new ScriptedScene();
  const { volume } = scene;
  volume.publish({ key: '1', late: '1' });
  unlinkSync(volume.path('late'));
  symlinkSync('volume/late', scene.at('link'));
  await scene.watch(scene.root, { recursive: true });
  await scene.pass(1_000);
  unlinkSync(scene.at('link'));
  await scene.hint(scene.at('link'));
  scene.takeChanges();
  volume.publish({ key: '2' });
  await scene.hint(volume.path('..data'));
  expect(scene.reported.at(-1)).toContain('volume/key=2');
});

/** A file system that answers `lstat` and `fstat` otherwise. @param change receives no path from `fstat`. */
function fsWithStats(change: (stat: BigIntStats, path?: string) => void): FileSystem {
  return interceptedFs(({ name, args: [path], make }) => {
    const stat = make();
    if (name === 'lstat' && stat) change(stat as BigIntStats, String(path));
    if (name === 'fstat') change(stat as BigIntStats);
    return stat;
  });
}

test('a file behind two links is complete if it was written before the one that was retargeted last', async () => {
  const scene = new ScriptedScene();
  for (const name of ['old', 'new']) {
    mkdirSync(scene.at(name));
    writeFileSync(scene.at(`${name}.txt`), name);
    utimesSync(scene.at(`${name}.txt`), 1, 1);
    symlinkSync(`../${name}.txt`, scene.at(`${name}/file`));
  }
  symlinkSync('old', scene.at('current'));
  const fs = fsWithStats((stat, path) => {
    // This link is older than the file that it leads to, which was not renamed either.
    if (path === scene.at('new/file')) stat.ctimeNs = 1n;
    if (path === scene.root) stat.mtimeNs = 1n;
  });
  await scene.watch(scene.at('current/file'), { fs });
  await scene.reports('old');
  unlinkSync(scene.at('current'));
  symlinkSync('new', scene.at('current'));
  await scene.hint();
  expect(scene.reported).toEqual(['old', 'new']);
});

/** All files and directories have one inode number; only the birth time tells them apart. */
const oneNumber = (stat: BigIntStats): void => void Object.assign(stat, { birthtimeNs: stat.ino, ino: 1n });

test('a file that replaces one with the same inode number counts as another file', async () => {
  const scene = new ScriptedScene();
  writeFileSync(scene.file, 'old');
  await scene.watch(scene.file, { fs: fsWithStats(oneNumber) });
  await scene.reports('old');
  writeFileSync(scene.at('next'), 'new');
  utimesSync(scene.at('next'), 1, 1);
  renameSync(scene.at('next'), scene.file);
  await scene.hint();
  expect(scene.reported).toEqual(['old', 'new']);
});

test('a directory that replaces one with the same inode number is listened to', async () => {
  const scene = new ScriptedScene();
  mkdirSync(scene.at('d'));
  await scene.watch(scene.at('d/file'), { fs: fsWithStats(oneNumber) });
  const identity = (): string | undefined =>
    scene.backend.directories.find(({ path }) => path === scene.at('d'))?.identity;
  const before = identity();
  renameSync(scene.at('d'), scene.at('before'));
  mkdirSync(scene.at('d'));
  await scene.hint();
  expect(identity()).not.toBe(before);
});

test('a volume that is missing at the first attempts of a read is read', async () => {
  const { volume } = new ScriptedScene();
  volume.publish({ key: 'text' });
  let missing = 3;
  const fs = faultyFileSystem((name, [path]) => {
    if (name !== 'lstat' || path !== volume.directory || missing === 0) return;
    missing -= 1;
    throw errno('ENOENT', volume.directory);
  });
  expect([...(await readVolume(volume.directory, { fs })).files.keys()]).toEqual(['key']);
});
