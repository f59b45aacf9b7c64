/** What a writer published whose sync failed, or who was killed before it: the next one that finds it there syncs it. */
import { join } from 'node:path';

import { atomicWriteFile, AtomicVolume, type FileSystem } from 'resilient-watcher';
import { expect, test } from 'vitest';

import { errno } from '../support/errno.js';
import { fsWith, type Called } from '../support/intercepted-fs.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

type Write = (directory: string, fs: FileSystem) => Promise<unknown>;

test.each<[string, Write, object]>([
  [
    'atomicWriteFile() with ifChanged',
    (directory, fs) => atomicWriteFile(join(directory, 'file'), 'text', { fs, ifChanged: true }),
    { written: false },
  ],
  [
    'AtomicVolume.write()',
    async (directory, fs) => new AtomicVolume(directory, { fs }).write({ key: 'text' }),
    { changed: false },
  ],
])('%s syncs the directory of what is there already', async (_, write, unchanged) => {
  const directory = temporaryDirectory();
  const opened = new Map<unknown, string>();
  let fails = true;
  let synced = 0;
  const fs = fsWith({
    open: ({ args, make }: Called) => {
      const fd = make();
      opened.set(fd, String(args[0]));
      return fd;
    },
    fsync: ({ args, make }: Called) => {
      if (opened.get(args[0]) !== directory) return make();
      if (fails) throw errno('EIO');
      synced += 1;
      return make();
    },
  });
  await expect(write(directory, fs)).rejects.toMatchObject({ step: 'sync-directory', published: true });
  fails = false;
  expect(await write(directory, fs)).toMatchObject(unchanged);
  expect(synced).toBeGreaterThan(0);
});
