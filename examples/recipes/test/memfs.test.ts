/** The library on a file system in memory, as tests of applications use it. */
import { Volume, createFsFromVolume } from 'memfs';
import {
  AtomicVolume,
  atomicWriteFile,
  readVolume,
  ResilientWatcher,
  type FileSystem,
} from 'resilient-watcher';
import { FakeClock } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

/** An empty file system with the directory `/etc`. */
function memory(): { fs: FileSystem; files: Volume } {
  const files = Volume.fromJSON({}, '/');
  files.mkdirSync('/etc');
  const { renameSync } = files;
  // That of memfs follows a link instead of renaming it.
  files.renameSync = (from, to) => {
    if (!files.lstatSync(from).isSymbolicLink()) {
      renameSync.call(files, from, to);
      return;
    }
    const target = files.readlinkSync(from);
    if (files.lstatSync(to, { throwIfNoEntry: false })) files.unlinkSync(to);
    files.symlinkSync(target, to);
    files.unlinkSync(from);
  };
  files.rename = (from, to, done) => {
    files.renameSync(from, to);
    done(null);
  };
  return { fs: createFsFromVolume(files) as unknown as FileSystem, files };
}

/** Two keys as kubelet publishes them. */
function publish(files: Volume, revision: string, text: string): void {
  files.mkdirSync(`/etc/app/${revision}`, { recursive: true });
  for (const key of ['a', 'b']) {
    files.writeFileSync(`/etc/app/${revision}/${key}`, text);
    if (!files.existsSync(`/etc/app/..data`)) files.symlinkSync(`..data/${key}`, `/etc/app/${key}`);
  }
  if (files.existsSync('/etc/app/..data')) files.unlinkSync('/etc/app/..data');
  files.symlinkSync(revision, '/etc/app/..data');
}

test('readVolume() reads a volume in memory', async () => {
  const { fs, files } = memory();
  publish(files, '..one', '1');
  const snapshot = await readVolume('/etc/app', { fs });
  expect(snapshot).toMatchObject({ kind: 'volume', revision: '..one' });
  expect([...snapshot.files].map(([key, { content }]) => [key, String(content)])).toEqual([
    ['a', '1'],
    ['b', '1'],
  ]);
});

test.each([
  ['a volume', '/etc/app', {}],
  ['a key', '/etc/app/a', {}],
  ['a group', ['/etc/app/a', '/etc/app/b'], {}],
  ['a tree', '/etc/app', { recursive: true }],
])('a watcher that polls follows %s in memory', async (_what, path, options) => {
  const { fs, files } = memory();
  publish(files, '..one', '1');
  const clock = new FakeClock();
  const watcher = new ResilientWatcher(path, { fs, backend: 'poll', clock, ...options });
  onTestFinished(() => watcher.close());
  const texts = (): Set<string> =>
    new Set([...(watcher.current?.files.values() ?? [])].map(({ content }) => String(content)));
  await watcher.start();
  expect(texts()).toEqual(new Set(['1']));
  publish(files, '..two', '2');
  await clock.advance(1_000);
  expect(texts()).toEqual(new Set(['2']));
  expect(watcher.status().changes).toBe(2);
});

test('a watcher follows a plain file in memory that is written in place, replaced and removed', async () => {
  const { fs, files } = memory();
  files.writeFileSync('/etc/file', '1');
  const clock = new FakeClock();
  const watcher = new ResilientWatcher('/etc/file', { fs, backend: 'poll', clock });
  onTestFinished(() => watcher.close());
  await watcher.start();
  files.writeFileSync('/etc/file', '2');
  await clock.advance(2_000);
  expect(String(watcher.current?.content)).toBe('2');
  files.writeFileSync('/etc/next', '3');
  files.renameSync('/etc/next', '/etc/file');
  await clock.advance(2_000);
  expect(String(watcher.current?.content)).toBe('3');
  files.unlinkSync('/etc/file');
  await clock.advance(2_000);
  expect(watcher.current?.kind).toBe('missing');
});

test('atomicWriteFile() writes to memory', async () => {
  const { fs, files } = memory();
  await atomicWriteFile('/etc/file', '1', { fs });
  await atomicWriteFile('/etc/file', '2', { fs });
  expect(files.readFileSync('/etc/file', 'utf8')).toBe('2');
  expect(files.readdirSync('/etc')).toEqual(['file']);
});

test('an AtomicVolume is written to memory, read and watched there', async () => {
  const { fs, files } = memory();
  const volume = new AtomicVolume('/etc/app', { fs, createDirectory: true });
  onTestFinished(() => volume.close());
  const clock = new FakeClock();
  const watcher = new ResilientWatcher('/etc/app', { fs, backend: 'poll', clock });
  onTestFinished(() => watcher.close());
  await volume.write({ a: '1', b: '1' });
  await watcher.start();
  await volume.write({ a: '2', b: '2' });
  await clock.advance(1_000);
  expect(String(watcher.current?.files.get('b')?.content)).toBe('2');
  const { files: read, revision } = await volume.read();
  expect([...read].map(([key, content]) => [key, String(content)])).toEqual([
    ['a', '2'],
    ['b', '2'],
  ]);
  expect(files.readlinkSync('/etc/app/..data')).toBe(revision);
});
