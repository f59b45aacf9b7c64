/** What somebody can do who may write into the directory of a file that is replaced, and what not. */
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

import { AtomicVolume, atomicWriteFile, atomicWriteFileSync, type WriteError } from 'resilient-watcher';
import { describe, expect, test } from 'vitest';

import { temporaryName } from '../../src/write/sweep.js';
import { STRANGER, StrikingFileSystem, grantByAcl, isRoot, runAs } from '../support/attacker.js';
import { fsWith } from '../support/intercepted-fs.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const modeOf = (path: string): string => (statSync(path).mode & 0o7777).toString(8);

describe.skipIf(!isRoot)('in a directory in which every user may create entries', () => {
  /** A directory with that mode, which belongs to `owner`. */
  const shared = (mode: number, owner = 0): string => {
    const directory = temporaryDirectory();
    chownSync(directory, owner, owner);
    chmodSync(directory, mode);
    return directory;
  };

  test.each([
    { mode: 0o1777, directoryOwner: 0, linkOwner: STRANGER, followed: false },
    { mode: 0o1777, directoryOwner: 0, linkOwner: 0, followed: true },
    { mode: 0o1777, directoryOwner: STRANGER, linkOwner: STRANGER, followed: true },
    { mode: 0o1777, directoryOwner: 1234, linkOwner: STRANGER, followed: false },
    { mode: 0o1755, directoryOwner: 0, linkOwner: STRANGER, followed: true },
    { mode: 0o777, directoryOwner: 0, linkOwner: STRANGER, followed: true },
  ])(
    'a link is followed by the rule of protected_symlinks, whatever the sysctl says: %j',
    async ({ mode, directoryOwner, linkOwner, followed }) => {
      const directory = shared(mode, directoryOwner);
      const target = join(temporaryDirectory(), 'target');
      writeFileSync(target, 'old');
      const path = join(directory, 'link');
      symlinkSync(target, path);
      lchownSync(path, linkOwner, linkOwner);
      if (followed) {
        await atomicWriteFile(path, 'new');
      } else {
        const refused = { name: 'WriteError', code: 'ERR_WRITE_UNTRUSTED', published: false };
        await expect(atomicWriteFile(path, 'new')).rejects.toMatchObject(refused);
        expect(() => atomicWriteFileSync(path, 'new')).toThrow(expect.objectContaining(refused));
      }
      expect(readFileSync(target, 'utf8')).toBe(followed ? 'new' : 'old');
    },
  );

  test.each([
    { mode: 0o1777, directoryOwner: 0, fileOwner: STRANGER, replaced: false },
    { mode: 0o1775, directoryOwner: 0, fileOwner: STRANGER, replaced: false },
    { mode: 0o1777, directoryOwner: 0, fileOwner: 0, replaced: true },
    { mode: 0o1777, directoryOwner: STRANGER, fileOwner: STRANGER, replaced: true },
    { mode: 0o777, directoryOwner: 0, fileOwner: STRANGER, replaced: true },
  ])(
    'a file is replaced by the rule of protected_regular, whatever the sysctl says: %j',
    async ({ mode, directoryOwner, fileOwner, replaced }) => {
      const directory = shared(mode, directoryOwner);
      const path = join(directory, 'token');
      writeFileSync(path, 'planted');
      chmodSync(path, 0o666);
      chownSync(path, fileOwner, fileOwner);
      const writing = atomicWriteFile(path, 'secret');
      if (replaced) await writing;
      else await expect(writing).rejects.toMatchObject({ code: 'ERR_WRITE_UNTRUSTED', published: false });
      expect(readFileSync(path, 'utf8')).toBe(replaced ? 'secret' : 'planted');
      expect(readdirSync(directory)).toEqual(['token']);
    },
  );

  test.each([{ mode: 0o1777 }, { mode: 0o1775 }])(
    'a file that may have been moved or linked there does not choose the mode of what replaces it: %j',
    async ({ mode }) => {
      const directory = shared(mode);
      const path = join(directory, 'token');
      for (const write of [atomicWriteFile, atomicWriteFileSync]) {
        for (const options of [{}, { mode: 'keep' }, { mode: undefined }] as const) {
          // Of root, as any file that another user has found and moved here.
          writeFileSync(path, 'planted');
          chmodSync(path, 0o4666);
          await write(path, 'secret', options);
          expect(modeOf(path)).toBe('600');
        }
        chmodSync(path, 0o400);
        await write(path, 'secret', { mode: 'keep' });
        expect(modeOf(path)).toBe('400');
        await write(path, 'public', { mode: 0o644 });
        expect(modeOf(path)).toBe('644');
      }
    },
  );

  /** Every place in a path at which a link can be, and a link that leads through one. */
  test.each([
    { planted: 'link', through: 'link/token' },
    { planted: 'link', through: 'link/a/token' },
    { planted: 'link', through: 'link/a/b/token' },
    { planted: 'link', through: 'link/a/../a/b/token' },
    { planted: 'link', through: './link/a/b/token' },
    { planted: 'link', through: 'link//a/token' },
    { planted: 'link', through: 'link/missing/token' },
    { planted: 'link', through: 'own/token', own: 'link/a' },
    { planted: 'link', through: 'own/a/token', own: 'link' },
    { planted: 'link', through: 'own/b/token', own: 'link/a/.' },
    { planted: 'link', through: 'own', own: 'link/a/token' },
  ])('another user’s link is not followed anywhere in a path: %j', async ({ planted, through, own }) => {
    const directory = shared(0o1777);
    const victim = temporaryDirectory();
    mkdirSync(join(victim, 'a/b'), { recursive: true });
    symlinkSync(victim, join(directory, planted));
    if (own !== undefined) symlinkSync(own, join(directory, 'own'));
    const path = `${directory}/${through}`;
    const before = readdirSync(victim, { recursive: true });
    const options = { createDirectory: true };
    for (const linkOwner of [STRANGER, 0]) {
      lchownSync(join(directory, planted), linkOwner, linkOwner);
      if (linkOwner === 0) {
        await atomicWriteFile(path, 'secret', options);
        expect(readFileSync(path, 'utf8')).toBe('secret');
      } else {
        const refused = { code: 'ERR_WRITE_UNTRUSTED', published: false };
        await expect(atomicWriteFile(path, 'secret', options)).rejects.toMatchObject(refused);
        expect(() => atomicWriteFileSync(path, 'secret', options)).toThrow(expect.objectContaining(refused));
        if (through !== 'own' && !through.includes('missing')) {
          await expect(new AtomicVolume(dirname(path)).write({ key: 'secret' })).rejects.toMatchObject(
            refused,
          );
        }
        expect(readdirSync(victim, { recursive: true })).toEqual(before);
      }
    }
  });

  test('links that lead through themselves end with an error', async () => {
    const directory = shared(0o1777);
    symlinkSync('loop/x', join(directory, 'loop'));
    const refused = { name: 'WriteError', published: false };
    await expect(atomicWriteFile(join(directory, 'loop/token'), 'x')).rejects.toMatchObject(refused);
    await expect(atomicWriteFile(join(directory, 'loop/a/token'), 'x')).rejects.toMatchObject(refused);
  });
});

describe('the permissions of a file never widen', () => {
  test('a permission that an ACL grants to one user is not granted to the group', async ({ skip }) => {
    const path = join(temporaryDirectory(), 'secret');
    writeFileSync(path, 'old', { mode: 0o600 });
    const obstacle = grantByAcl(path, STRANGER);
    skip(obstacle !== undefined, obstacle);
    // The mask of the ACL shows as the permissions of the group, which has none.
    expect(modeOf(path)).toBe('660');
    await atomicWriteFile(path, 'new');
    expect(modeOf(path)).toBe('600');
  });

  test('what a default ACL of the directory grants one user takes group bits in the mode', async ({
    skip,
  }) => {
    skip(!isRoot, 'not root');
    const directory = temporaryDirectory();
    const obstacle = grantByAcl(directory, STRANGER, 'default');
    skip(obstacle !== undefined, obstacle);
    chmodSync(directory, 0o711);
    const path = join(directory, 'secret');
    const canRead = `let read = true; try { fs.readFileSync(${JSON.stringify(path)}) } catch { read = false } console.log(read)`;
    await atomicWriteFile(path, 'new');
    expect(runAs(STRANGER, STRANGER, canRead)).toBe('false\n');
    await atomicWriteFile(path, 'new', { mode: 0o640 });
    expect(runAs(STRANGER, STRANGER, canRead)).toBe('true\n');
  });

  test.skipIf(!isRoot)(
    'a group that can be kept is kept, and its permissions, too, if requested',
    async () => {
      const path = join(temporaryDirectory(), 'secret');
      writeFileSync(path, 'old');
      chownSync(path, 0, 4321);
      chmodSync(path, 0o640);
      await atomicWriteFile(path, 'new', { mode: 'keep' });
      expect(statSync(path)).toMatchObject({ uid: 0, gid: 4321 });
      expect(modeOf(path)).toBe('640');
    },
  );

  test.skipIf(!isRoot)(
    'a group that cannot be kept is not replaced by another that may read the file',
    () => {
      const directory = temporaryDirectory();
      chownSync(directory, STRANGER, STRANGER);
      const path = join(directory, 'secret');
      writeFileSync(path, 'old');
      chownSync(path, STRANGER, 4321);
      chmodSync(path, 0o640);
      runAs(STRANGER, 100, `await atomicWriteFile(${JSON.stringify(path)}, 'new');`);
      expect(statSync(path)).toMatchObject({ uid: STRANGER, gid: 100 });
      expect(modeOf(path)).toBe('600');
    },
  );
});

test('a write stays in the same directory if the directory is replaced by a link at any call', async () => {
  let replaced = 0;
  for (let at = 0; ; at += 1) {
    const root = temporaryDirectory();
    const [directory, victim] = [join(root, 'directory'), join(root, 'victim')];
    mkdirSync(directory);
    mkdirSync(victim);
    // The mode is inherited: that of one file must not be given to the other.
    writeFileSync(join(directory, 'token'), 'planted');
    chmodSync(join(directory, 'token'), 0o666);
    writeFileSync(join(victim, 'token'), 'precious', { mode: 0o600 });
    const fs = new StrikingFileSystem(at, () => {
      renameSync(directory, join(root, 'moved'));
      symlinkSync(victim, directory);
      replaced += 1;
    });
    await atomicWriteFile(join(directory, 'token'), 'secret', { fs: fs.port }).catch(() => undefined);
    expect(modeOf(join(victim, 'token'))).toBe('600');
    expect(readdirSync(victim)).toEqual(['token']);
    const moved = fs.struck ? join(root, 'moved') : directory;
    expect(modeOf(join(moved, 'token'))).toBe('666');
    expect(readdirSync(moved)).toEqual(['token']);
    if (!fs.struck) break;
  }
  expect(replaced).toBeGreaterThan(5);
});

test('links that lead to each other end with an error', async () => {
  const directory = temporaryDirectory();
  symlinkSync('two', join(directory, 'one'));
  symlinkSync('one', join(directory, 'two'));
  for (const path of ['one', 'one/token']) {
    const refused = {
      name: 'WriteError',
      published: false,
      message: expect.stringMatching(/links/) as string,
    };
    await expect(atomicWriteFile(join(directory, path), 'x')).rejects.toMatchObject(refused);
  }
});

test('a link on the way that disappears at any call is followed, or the write fails and says so', async () => {
  const codes = new Set<unknown>();
  for (let at = 0; ; at += 1) {
    const directory = temporaryDirectory();
    mkdirSync(join(directory, 'target'));
    symlinkSync('target', join(directory, 'link'));
    const fs = new StrikingFileSystem(at, () => rmSync(join(directory, 'link')));
    const writing = atomicWriteFile(join(directory, 'link/file'), 'x', { fs: fs.port });
    codes.add(
      await writing.then(
        () => 'written',
        (error: unknown) => (error as WriteError).code,
      ),
    );
    if (!fs.struck) break;
  }
  expect([...codes].sort()).toEqual(['ERR_WRITE_CONFLICT', 'ERR_WRITE_NO_DIRECTORY', 'written']);
});

test('with thousands of planted names, a write examines a bounded number', () => {
  const directory = temporaryDirectory(existsSync('/dev/shm') ? '/dev/shm' : undefined);
  for (let count = 0; count < 5_000; count += 1) {
    writeFileSync(join(directory, temporaryName('file')), '');
  }
  let lookups = 0;
  const fs = fsWith({ lstat: ({ make }) => ((lookups += 1), make()) });
  atomicWriteFileSync(join(directory, 'token'), 'new', { durability: 'none', fs });
  // Some are, to learn their age.
  expect(lookups).toBeGreaterThan(100);
  expect(lookups).toBeLessThan(1_000);
  expect(readFileSync(join(directory, 'token'), 'utf8')).toBe('new');
});
