/** Where a file is written: links, directories, and what is in the way. */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import {
  AtomicVolume,
  atomicWriteFile,
  atomicWriteFileSync,
  isTemporaryName,
  readVolume,
  WriteError,
} from 'resilient-watcher';
import { expect, test } from 'vitest';

import { debris } from '../support/debris.js';
import { errno } from '../support/errno.js';
import { fsWith } from '../support/intercepted-fs.js';
import { ScriptedFs } from '../support/scripted-fs.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { existing, outcome } from './written-file.js';

test('a link is followed to its target, through every directory on the real path', async () => {
  const directory = temporaryDirectory();
  mkdirSync(join(directory, 'a/b'), { recursive: true });
  mkdirSync(join(directory, 'c'));
  symlinkSync('a/b', join(directory, 'short'));
  symlinkSync('../../c/real', join(directory, 'a/b/link'));
  writeFileSync(join(directory, 'c/real'), 'old');
  const { path } = await atomicWriteFile(join(directory, 'short/link'), 'new');
  expect(readFileSync(join(directory, 'c/real'), 'utf8')).toBe('new');
  expect(readFileSync(path, 'utf8')).toBe('new');
  expect(readdirSync(join(directory, 'c'))).toEqual(['real']);
});

test('a link can be replaced or refused, and a loop is an error', async () => {
  const directory = temporaryDirectory();
  const [link, loop] = [join(directory, 'link'), join(directory, 'loop')];
  symlinkSync('real', link);
  symlinkSync('loop', loop);
  expect(await outcome(atomicWriteFile(link, 'x', { symlink: 'error' }))).toMatchObject({
    code: 'ERR_WRITE_NOT_FILE',
    step: 'resolve',
  });
  expect(await outcome(atomicWriteFile(loop, 'x'))).toMatchObject({ code: 'ERR_WRITE_NOT_FILE' });
  await atomicWriteFile(link, 'x', { symlink: 'replace' });
  expect(lstatSync(link).isFile()).toBe(true);
  expect(existsSync(join(directory, 'real'))).toBe(false);
});

test('missing directories are created on request, and made durable from the top', async () => {
  const directory = temporaryDirectory();
  const path = join(directory, 'a/b/file');
  expect(await outcome(atomicWriteFile(path, 'x'))).toMatchObject({ code: 'ERR_WRITE_NO_DIRECTORY' });
  const scripted = new ScriptedFs();
  await atomicWriteFile(path, 'x', { createDirectory: true, fs: scripted.fs });
  expect(readFileSync(path, 'utf8')).toBe('x');
  const opened = scripted.calls.filter(
    ({ name, args }) => name === 'open' && !isTemporaryName(String(args[0]).split('/').at(-1) ?? ''),
  );
  expect(opened.map(({ args }) => args[0]).slice(-3)).toEqual([
    directory,
    join(directory, 'a'),
    join(directory, 'a/b'),
  ]);
});

const refusals: readonly (readonly [string, (path: string) => unknown, string])[] = [
  ['a directory', (path) => mkdirSync(path), 'ERR_WRITE_NOT_FILE'],
  ['a pipe', (path) => execFileSync('mkfifo', [path]), 'ERR_WRITE_NOT_FILE'],
  ['a link to a device', (path) => symlinkSync('/dev/null', path), 'ERR_WRITE_NOT_FILE'],
];

test.each(refusals)('%s at the path is refused and left as it is', async (_, make, code) => {
  const directory = temporaryDirectory();
  const path = join(directory, 'file');
  make(path);
  expect(await outcome(atomicWriteFile(path, 'x'))).toMatchObject({
    code,
    step: 'resolve',
    published: false,
    message: expect.stringContaining('Nothing has changed for readers') as string,
  });
  expect(() => atomicWriteFileSync(path, 'x')).toThrow(WriteError);
  expect(debris(directory, 'file')).toEqual([]);
});

test.each([
  ['EROFS', 'open', 'ERR_WRITE_ACCESS', /read-only/],
  ['ENOSPC', 'write', 'ERR_WRITE_NO_SPACE', /no space/],
  ['EDQUOT', 'fsync', 'ERR_WRITE_NO_SPACE', /quota/],
  ['EXDEV', 'rename', 'ERR_WRITE_MOUNTED', /several file systems/],
  ['EACCES', 'open', 'ERR_WRITE_ACCESS', /permission denied/],
  ['EIO', 'fsync', 'ERR_WRITE_IO', /EIO/],
] as const)('%s at %s becomes %s', async (errno, name, code, message) => {
  const { path } = existing();
  const { fs } = new ScriptedFs({ always: { [name]: errno } });
  const error = await outcome(atomicWriteFile(path, 'a secret', { fs, durability: 'file' }));
  expect(error).toMatchObject({ name: 'WriteError', code, path, published: false, cause: { code: errno } });
  expect((error as Error).message).toMatch(message);
  expect((error as Error).message).toContain(`"${path}"`);
  expect((error as Error).message).not.toContain('a secret');
});

test('if the directory cannot be synced after the rename, the error says that readers see the file', async () => {
  const { path } = existing();
  let synced = 0;
  const fs = fsWith(
    {
      fsync: ({ make }) => {
        if ((synced += 1) === 2) throw errno('EIO');
        return make();
      },
    },
    'remote',
  );
  const error = await outcome(atomicWriteFile(path, 'new', { fs }));
  expect(error).toMatchObject({
    step: 'sync-directory',
    published: true,
    message: expect.stringContaining('Readers see the change') as string,
  });
  expect(readFileSync(path, 'utf8')).toBe('new');
});

test.each(['EINVAL', 'ENOTSUP', 'EPERM'])(
  'a file system without fsync (%s) is still written',
  async (errno) => {
    const { path } = existing();
    await atomicWriteFile(path, 'new', { fs: new ScriptedFs({ always: { fsync: errno } }).fs });
    expect(readFileSync(path, 'utf8')).toBe('new');
  },
);

test('as docs/atomic-writes.md says, another name of the old file keeps the old content', async () => {
  const { path } = existing();
  linkSync(path, `${path}.hard`);
  await atomicWriteFile(path, 'new');
  expect(readFileSync(`${path}.hard`, 'utf8')).toBe('old');
});

test('a file: URL is a path, for files and for volumes', async () => {
  const directory = pathToFileURL(`${temporaryDirectory()}/`);
  const file = new URL('a%20file', directory);
  await atomicWriteFile(file, 'one');
  expect(readFileSync(file, 'utf8')).toBe('one');
  atomicWriteFileSync(file, 'two');
  expect(readFileSync(file, 'utf8')).toBe('two');
  const volume = new AtomicVolume(new URL('volume', directory), { createDirectory: true });
  await volume.write({ key: 'value' });
  const { files } = await readVolume(new URL('volume', directory));
  expect(String(files.get('key')?.content)).toBe('value');
});
