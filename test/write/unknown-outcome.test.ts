/** A file server that reports a rename as failed: was it done? */
import { readFileSync, readlinkSync, type BigIntStats } from 'node:fs';
import { join } from 'node:path';

import { AtomicVolume, atomicWriteFile, atomicWriteFileSync } from 'resilient-watcher';
import { expect, test } from 'vitest';

import type { FileSystem } from '../../src/core/ports/file-system.js';
import { debris } from '../support/debris.js';
import { errno } from '../support/errno.js';
import { fsWith } from '../support/intercepted-fs.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

/** What the server does with a rename, which it reports as failed, and what it says afterwards. */
interface Server {
  readonly renames: boolean;
  readonly inodes: 'stable' | 'changing';
  /** What `..data` leads to, as long as it is cached. */
  readonly cached?: string;
}

function serverThat({ renames, inodes, cached }: Server): FileSystem {
  let lookups = 0n;
  return fsWith(
    {
      readlink: ({ args, make }) =>
        cached !== undefined && String(args[0]).endsWith('/..data') ? Buffer.from(cached) : make(),
      rename: ({ make }) => {
        if (renames) make();
        throw errno('EIO');
      },
      lstat: ({ args, make }) => {
        const stat = make() as BigIntStats | undefined;
        // A directory that is open is not looked up again.
        const isLookup = !String(args[0]).endsWith('/.');
        if (stat && isLookup && inodes === 'changing') stat.ino = lookups += 1n;
        return stat;
      },
    },
    'remote',
  );
}

const settled = <T>(work: Promise<T>): Promise<unknown> => work.catch((error: unknown) => error);

test.each([
  { server: { renames: true, inodes: 'stable' }, published: 'done', content: 'new' },
  { server: { renames: true, inodes: 'changing' }, published: null, content: 'new' },
  { server: { renames: false, inodes: 'stable' }, published: false, content: 'old' },
  { server: { renames: false, inodes: 'changing' }, published: false, content: 'old' },
] as const)(
  'a server that renames a file ($server.renames), with $server.inodes inode numbers, but says that it failed: published is $published',
  async ({ server, published, content }) => {
    const directory = temporaryDirectory();
    const path = join(directory, 'file');
    atomicWriteFileSync(path, 'old');
    const outcome = await settled(atomicWriteFile(path, 'new', { fs: serverThat(server) }));
    expect(readFileSync(path, 'utf8')).toBe(content);
    expect(debris(directory, 'file')).toEqual([]);
    if (published === 'done') expect(outcome).toMatchObject({ written: true });
    else expect(outcome).toMatchObject({ step: 'rename', published });
    if (published === null) expect(outcome).toHaveProperty('message', expect.stringMatching(/not known/));
  },
);

test.each([
  { renames: true, isCached: false, published: 'done', content: 'new' },
  { renames: true, isCached: true, published: null, content: 'new' },
  { renames: false, isCached: false, published: false, content: 'old' },
] as const)(
  'a server that swaps a volume ($renames), answers lookups from a cache ($isCached), and says that it failed: published is $published, and the set is whole',
  async ({ renames, isCached, published, content }) => {
    const directory = temporaryDirectory();
    await new AtomicVolume(directory).write({ one: 'old', two: 'old' });
    const cached = isCached ? readlinkSync(join(directory, '..data')) : undefined;
    const fs = serverThat({ renames, inodes: 'stable', ...(cached !== undefined && { cached }) });
    const outcome = await settled(new AtomicVolume(directory, { fs }).write({ one: 'new', two: 'new' }));
    for (const key of ['one', 'two']) expect(readFileSync(join(directory, key), 'utf8')).toBe(content);
    if (published === 'done') expect(outcome).toMatchObject({ changed: true });
    else expect(outcome).toMatchObject({ step: 'rename', published });
    await new AtomicVolume(directory).write({ one: 'next' });
    expect(
      debris(directory, '..data', 'one').filter((name) => name !== readlinkSync(join(directory, '..data'))),
    ).toEqual([]);
  },
);

/** Nothing can be renamed or removed. */
const calls = {
  rename: () => {
    throw errno('EIO');
  },
  unlink: () => {
    throw errno('EIO');
  },
};

test.each([
  ['remote', null],
  ['disk', false],
] as const)(
  'if neither the rename nor the removal of what was written succeeds (%s), published is %s',
  async (place, published) => {
    const fs = fsWith(calls, place);
    const directory = temporaryDirectory();
    const expected = { name: 'WriteError', step: 'rename', published };
    await expect(atomicWriteFile(join(directory, 'file'), 'new', { fs })).rejects.toMatchObject(expected);
    const volume = new AtomicVolume(join(directory, 'volume'), { fs, createDirectory: true });
    await expect(volume.write({ key: 'new' })).rejects.toMatchObject(expected);
  },
);

test('a write that is aborted while it waits for such a server says that the outcome is not known', async () => {
  const controller = new AbortController();
  const fs = fsWith(
    {
      ...calls,
      rename: () => {
        controller.abort();
        throw errno('EBUSY');
      },
    },
    'remote',
  );
  const writing = atomicWriteFile(join(temporaryDirectory(), 'file'), 'new', {
    fs,
    signal: controller.signal,
  });
  await expect(writing).rejects.toMatchObject({ name: 'WriteError', published: null });
});
