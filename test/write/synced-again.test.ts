/** What a writer published whose sync failed, or who was killed before it: the next one that finds it there syncs it. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

import { atomicWriteFile, AtomicVolume, type FileSystem } from 'resilient-watcher';
import { FakeClock } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { errno } from '../support/errno.js';
import { fsWith, type Called } from '../support/intercepted-fs.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

type Write = (directory: string, fs: FileSystem) => Promise<unknown>;

/** The system's calls; `fsync` of the directory is one of these. */
function fsWithSync(directory: string, sync: (make: () => unknown) => unknown): FileSystem {
  const opened = new Map<unknown, string>();
  return fsWith({
    open: ({ args, make }: Called) => {
      const fd = make();
      opened.set(fd, String(args[0]));
      return fd;
    },
    fsync: ({ args, make }: Called) => (opened.get(args[0]) === directory ? sync(make) : make()),
  });
}

test.each([0, 1000])(
  'a revision that a power cut may bring back stays until a sync succeeds (graceMs %i)',
  async (graceMs) => {
    const directory = temporaryDirectory();
    let fails = false;
    const fs = fsWithSync(directory, (make) => {
      if (fails) throw errno('EIO');
      return make();
    });
    const clock = new FakeClock();
    const volume = new AtomicVolume(directory, { fs, clock, graceMs });
    const { revision } = await volume.write({ key: 'old' });
    fails = true;
    for (const key of ['new', 'newer', 'newest']) {
      await expect(volume.write({ key })).rejects.toMatchObject({ step: 'sync-directory', published: true });
      // The next write comes after what this begins.
      await clock.advance(graceMs);
    }
    expect(readdirSync(directory)).toContain(revision);
    fails = false;
    await volume.write({ key: 'newest' });
    expect(readdirSync(directory)).not.toContain(revision);
  },
);

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
  let fails = true;
  let synced = 0;
  const fs = fsWithSync(directory, (make) => {
    if (fails) throw errno('EIO');
    synced += 1;
    return make();
  });
  await expect(write(directory, fs)).rejects.toMatchObject({ step: 'sync-directory', published: true });
  fails = false;
  expect(await write(directory, fs)).toMatchObject(unchanged);
  expect(synced).toBeGreaterThan(0);
});
