/** The mode and the owner of a file that is written. */
import { chmodSync, chownSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

import { AtomicVolume, atomicWriteFile, atomicWriteFileSync, isTemporaryName } from 'resilient-watcher';
import { expect, test } from 'vitest';

import { debris } from '../support/debris.js';
import { errno } from '../support/errno.js';
import { fsWith } from '../support/intercepted-fs.js';
import { ScriptedFs } from '../support/scripted-fs.js';
import { existing, modeOf, outcome } from './written-file.js';

const isRoot = process.getuid?.() === 0;

test('the mode is the option, else that of the file, else 0600, whatever the umask', async () => {
  const { path } = existing({ mode: 0o604 });
  const umask = process.umask(0o277);
  try {
    await atomicWriteFile(path, 'kept');
    expect(modeOf(path)).toBe('604');
    chmodSync(path, 0o664);
    await atomicWriteFile(path, 'kept', { mode: 'keep' });
    expect(modeOf(path)).toBe('664');
    await atomicWriteFile(path, 'less for the group, in case of an ACL');
    expect(modeOf(path)).toBe('644');
    atomicWriteFileSync(path, 'given', { mode: 0o4751 });
    expect(modeOf(path)).toBe('4751');
    await atomicWriteFile(`${path}.new`, 'default');
    expect(modeOf(`${path}.new`)).toBe('600');
  } finally {
    process.umask(umask);
  }
});

test.skipIf(!isRoot)(
  'the owner is the option, else that of the file (only root can give files away)',
  async () => {
    const { path } = existing({ mode: 0o644 });
    chownSync(path, 1234, 2345);
    await atomicWriteFile(path, 'kept');
    expect(statSync(path)).toMatchObject({ uid: 1234, gid: 2345 });
    await atomicWriteFile(path, 'given', { owner: { uid: 1, gid: 2 } });
    expect(statSync(path)).toMatchObject({ uid: 1, gid: 2 });
  },
);

test.skipIf(process.platform !== 'linux')(
  'a new directory whose open is denied once keeps its mode: a change could cost its set-group bit',
  async () => {
    const { directory } = existing();
    chmodSync(directory, 0o2755);
    const changes: unknown[] = [];
    let isDenied = false;
    const fs = fsWith(
      {
        open: ({ args, make }) => {
          if (isDenied || !String(args[0]).endsWith('/new')) return make();
          if (!readdirSync(directory).includes('new')) return make();
          isDenied = true;
          throw errno('EACCES');
        },
        chmod: ({ args }) => void changes.push(args),
      },
      'remote',
    );
    await atomicWriteFile(join(directory, 'new/file'), 'x', { fs, createDirectory: true });
    expect(isDenied).toBe(true);
    expect(changes).toEqual([]);
    expect(statSync(join(directory, 'new')).mode & 0o2000).toBe(0o2000);
  },
);

test('an owner that cannot be kept is ignored, one that was requested is an error', async () => {
  const { directory, path } = existing({ mode: 0o4755 });
  const fchown = (): never => {
    throw errno('EPERM');
  };
  const refusing = fsWith({ fchown }, 'remote');
  const somebodyElses = fsWith(
    {
      fchown,
      lstat: ({ make }) => Object.assign(make() as object, { uid: 4321n }),
    },
    'remote',
  );
  await atomicWriteFile(path, 'new', { fs: somebodyElses });
  // A set-uid bit means its owner.
  expect(modeOf(path)).toBe('755');
  const asked = atomicWriteFile(path, 'newer', { fs: refusing, owner: { uid: 4321, gid: 1 } });
  expect(await outcome(asked)).toMatchObject({ step: 'chown', code: 'ERR_WRITE_ACCESS' });
  expect(debris(directory, 'file')).toEqual([]);
});

test('a file is accessible to its owner only until it is complete', async () => {
  const { path, directory } = existing({ mode: 0o666 });
  const modes: string[] = [];
  const afterChange = (): void => {
    for (const name of readdirSync(directory).filter(isTemporaryName))
      modes.push(modeOf(join(directory, name)));
  };
  await atomicWriteFile(path, 'secret', { fs: new ScriptedFs({ afterChange }).fs });
  expect(modes).toContain('600');
  expect(modes.slice(0, modes.lastIndexOf('600'))).not.toContain('666');
  expect(modeOf(path)).toBe('666');
});

test("the caller's options are not touched", async () => {
  const options = Object.freeze({ mode: 0o640 });
  const { path } = existing();
  await atomicWriteFile(path, 'a', options);
  expect(options).toEqual({ mode: 0o640 });
});

test.each([4294967295, 4294967296, -1, 0.5])('an owner that no file can have is refused: %d', async (id) => {
  const { path } = existing({ mode: 0o600 });
  for (const owner of [
    { uid: id, gid: 0 },
    { uid: 0, gid: id },
  ]) {
    await expect(atomicWriteFile(path, 'new', { owner })).rejects.toThrow(/option "owner" must be/);
    expect(() => atomicWriteFileSync(path, 'new', { owner })).toThrow(/option "owner" must be/);
    const volume = new AtomicVolume(`${path}.volume`, { createDirectory: true });
    await expect(volume.write({ key: { data: 'new', owner } })).rejects.toThrow(/property "owner" must be /);
  }
});
