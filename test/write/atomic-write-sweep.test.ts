/** What writers that were killed left behind is removed after a day, and nothing else. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';

import { AtomicVolume, atomicWriteFile, atomicWriteFileSync, isTemporaryName } from 'resilient-watcher';
import { expect, test } from 'vitest';

import { temporaryName } from '../../src/write/sweep.js';
import { debris } from '../support/debris.js';
import { errno } from '../support/errno.js';
import { fsWith } from '../support/intercepted-fs.js';
import { aDayLater, later } from '../support/later.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { existing, outcome } from './written-file.js';

/** What a writer left that was killed. */
function orphanIn(directory: string): string {
  const orphan = join(directory, temporaryName('file'));
  writeFileSync(orphan, 'half');
  return orphan;
}

test('an unfinished file is removed by the first write after a day, and nothing else is', async () => {
  for (const write of [atomicWriteFile, atomicWriteFileSync]) {
    const { path, directory } = existing();
    const orphan = orphanIn(directory);
    // A copy keeps the time of the last write.
    utimesSync(orphan, 0, 0);
    const own = basename(orphan);
    const strangers = ['.rw-mine', '.file.tmp', `.rw-${'0'.repeat(35)}.tmp`, `${own}~`, `a${own}`];
    for (const name of strangers) writeFileSync(join(directory, name), '');
    await write(path, 'new');
    await later(23, () => write(path, 'new'));
    expect(existsSync(orphan)).toBe(true);
    await aDayLater(() => write(path, 'new', { sweep: false }));
    expect(existsSync(orphan)).toBe(true);
    await aDayLater(() => write(path, 'new'));
    expect(debris(directory, 'file').sort()).toEqual(strangers.sort());
  }
});

test.each(['ENOSPC', 'EDQUOT', 'EIO'])(
  'it is removed although the write fails with %s, because it takes space',
  async (code) => {
    const fs = fsWith({
      write: () => {
        throw errno(code);
      },
    });
    for (const write of [atomicWriteFile, atomicWriteFileSync]) {
      const { path, directory } = existing();
      orphanIn(directory);
      await aDayLater(async () => {
        await expect((async () => write(path, 'new', { fs }))()).rejects.toMatchObject({ step: 'write' });
      });
      expect(debris(directory, 'file')).toEqual([]);
    }
  },
);

test('of any number of unfinished files, a write examines 256, and later ones the rest', async () => {
  const { path, directory } = existing();
  for (let count = 0; count < 300; count += 1) orphanIn(directory);
  await aDayLater(() => atomicWriteFile(path, 'new'));
  expect(debris(directory, 'file')).toHaveLength(300 - 256);
  await aDayLater(() => atomicWriteFile(path, 'new'));
  expect(debris(directory, 'file')).toEqual([]);
});

test('a thousand other directories are remembered as swept, and no more', async () => {
  const { path, directory } = existing();
  const others = temporaryDirectory();
  const orphan = orphanIn(directory);
  await aDayLater(() => {
    // Where the path leads when it is swept, there is nothing.
    renameSync(directory, join(others, 'aside'));
    atomicWriteFileSync(path, 'new', { createDirectory: true });
    rmSync(directory, { recursive: true });
    renameSync(join(others, 'aside'), directory);
    atomicWriteFileSync(path, 'newer');
    expect(existsSync(orphan)).toBe(true);
    for (let count = 0; count < 1_024; count += 1) {
      const other = join(others, String(count));
      mkdirSync(other);
      atomicWriteFileSync(join(other, 'file'), '', { durability: 'none' });
    }
    atomicWriteFileSync(path, 'newest');
    expect(existsSync(orphan)).toBe(false);
  });
});

test('a writer that waits for its data for more than a day loses its file: the write fails, the old content stays', async () => {
  const { path, directory } = existing();
  let give: (() => void) | undefined;
  async function* slow(): AsyncGenerator<string> {
    yield 'one';
    await new Promise<void>((resolve) => (give = resolve));
    yield 'two';
  }
  const writing = outcome(atomicWriteFile(path, slow()));
  while (!give) await new Promise(setImmediate);
  const [name = ''] = debris(directory, 'file');
  expect(isTemporaryName(name)).toBe(true);
  await later(23, () => atomicWriteFile(`${path}.other`, 'x'));
  expect(readdirSync(directory)).toContain(name);
  await aDayLater(() => atomicWriteFile(`${path}.other`, 'x'));
  expect(readdirSync(directory)).not.toContain(name);
  give();
  expect(await writing).toMatchObject({ name: 'WriteError', step: 'rename', published: false });
  expect(readFileSync(path, 'utf8')).toBe('old');
  expect(debris(directory, 'file', 'file.other')).toEqual([]);
});

test('a revision that takes more than a day to write is not published', async () => {
  const { directory } = existing();
  const volume = join(directory, 'volume');
  await new AtomicVolume(volume, { createDirectory: true }).write({ key: 'old' });
  // As another process: writes to the same path wait for each other.
  symlinkSync(volume, join(directory, 'alias'));
  const other = new AtomicVolume(join(directory, 'alias'));
  let isSlow = true;
  const fs = fsWith(
    {
      write: async ({ make }) => {
        if (isSlow) await aDayLater(() => other.write({ key: 'newer' }));
        isSlow = false;
        return make();
      },
    },
    'remote',
  );
  await expect(new AtomicVolume(volume, { fs }).write({ key: 'slow' })).rejects.toMatchObject({
    name: 'WriteError',
    published: false,
  });
  expect(readFileSync(join(volume, 'key'), 'utf8')).toBe('newer');
  expect(readdirSync(volume)).toHaveLength(3);
});
