/** Where entries cannot be reached through a descriptor: macOS, no /proc, `node --permission`, a file system port. */
import { mkdirSync, readFileSync, readdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { AtomicVolume, atomicWriteFile, nodeFileSystem, type FileSystem } from 'resilient-watcher';
import { expect, test } from 'vitest';

import { errno } from '../support/faulty-file-system.js';
import { slowFileSystem } from '../support/scripted-file-system.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const withoutDescriptors = (calls: Partial<FileSystem> = {}): FileSystem =>
  slowFileSystem({
    stat: (path) =>
      path.startsWith('/proc/')
        ? Promise.reject(errno('ERR_ACCESS_DENIED', path))
        : nodeFileSystem.stat(path),
    ...calls,
  });

test('files and volumes are still written, compared, swept and read', async () => {
  const fs = withoutDescriptors();
  const directory = temporaryDirectory();
  await atomicWriteFile(join(directory, 'a/b/file'), 'one', { fs, createDirectory: true });
  await atomicWriteFile(join(directory, 'a/b/file'), 'two', { fs });
  expect(readFileSync(join(directory, 'a/b/file'), 'utf8')).toBe('two');
  const volume = new AtomicVolume(join(directory, 'c/volume'), { fs, createDirectory: true });
  await volume.write({ key: '1', 'd/e': '1' });
  await volume.write({ key: '2', 'd/e': '2' });
  expect((await volume.write({ key: '2', 'd/e': '2' })).changed).toBe(false);
  expect(Object.fromEntries((await volume.read()).files)).toEqual({
    key: Buffer.from('2'),
    'd/e': Buffer.from('2'),
  });
  expect(readdirSync(volume.directory)).toHaveLength(4);
});

test('a directory that is replaced by a link is detected before the file is published', async () => {
  const root = temporaryDirectory();
  const [directory, victim] = [join(root, 'directory'), join(root, 'victim')];
  mkdirSync(directory);
  mkdirSync(victim);
  writeFileSync(join(victim, 'token'), 'precious');
  const fs = withoutDescriptors({
    write: (...args) => {
      renameSync(directory, join(root, 'moved'));
      symlinkSync(victim, directory);
      return nodeFileSystem.write(...args);
    },
  });
  await expect(atomicWriteFile(join(directory, 'token'), 'secret', { fs })).rejects.toMatchObject({
    code: 'ERR_WRITE_CONFLICT',
    published: false,
  });
  expect(readFileSync(join(victim, 'token'), 'utf8')).toBe('precious');
});

test('a pending revision that is replaced by a link gets no file', async () => {
  const directory = temporaryDirectory();
  const victim = temporaryDirectory();
  const fs = withoutDescriptors({
    mkdir: async (path, mode) => {
      await nodeFileSystem.mkdir(path, mode);
      renameSync(path, join(directory, 'stolen'));
      symlinkSync(victim, path);
    },
  });
  const writing = new AtomicVolume(directory, { fs }).write({ 'tls.key': 'secret' });
  await expect(writing).rejects.toMatchObject({ code: 'ERR_WRITE_CONFLICT' });
  expect(readdirSync(victim)).toEqual([]);
});
