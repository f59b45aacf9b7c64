/** Where entries cannot be reached through a descriptor: macOS, no /proc, `node --permission`, a file system port. */
import { mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { AtomicVolume, atomicWriteFile } from 'resilient-watcher';
import { expect, test } from 'vitest';

import type { FileSystem } from '../../src/core/ports/file-system.js';
import { errno } from '../support/errno.js';
import { fsWith, type Called, type CallName } from '../support/intercepted-fs.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const withoutDescriptors = (calls: Partial<Record<CallName, (call: Called) => unknown>> = {}): FileSystem =>
  fsWith(
    {
      lstat: ({ args, make }) => {
        if (String(args[0]).startsWith('/proc/')) throw errno('ERR_ACCESS_DENIED');
        return make();
      },
      ...calls,
    },
    'remote',
  );

/** /proc is that of another PID namespace: the number of a descriptor is that of another directory. */
const withForeignDescriptors = (): FileSystem =>
  fsWith(
    {
      lstat: ({ args: [path, ...rest], make }) =>
        make([String(path).startsWith('/proc/') ? '/' : path, ...rest]),
      open: ({ args: [path], make }) => {
        if (String(path).startsWith('/proc/')) throw errno('ENOENT');
        return make();
      },
    },
    'remote',
  );

test.each([
  ['no descriptors', withoutDescriptors],
  ['those of another process', withForeignDescriptors],
])('files and volumes are still written, compared, swept and read (%s)', async (_, make) => {
  const fs = make();
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
    write: ({ make }) => {
      renameSync(directory, join(root, 'moved'));
      symlinkSync(victim, directory);
      return make();
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
    mkdir: ({ args, make }) => {
      make();
      renameSync(String(args[0]), join(directory, 'stolen'));
      symlinkSync(victim, String(args[0]));
    },
  });
  const writing = new AtomicVolume(directory, { fs }).write({ 'tls.key': 'secret' });
  await expect(writing).rejects.toMatchObject({ code: 'ERR_WRITE_CONFLICT' });
  expect(readdirSync(victim)).toEqual([]);
});
