/** How many calls of a write to a volume are made at the same time. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { AtomicVolume, nodeFileSystem, type FileSystem } from 'resilient-watcher';
import { describe, expect, test } from 'vitest';

import { arrange } from '../support/mount-table.js';

const files = (count: number, content: string): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`conf${index % 3}/key-${index}`, content]));

const NFS = 0x6969;

/**
 * The real file system behind this mount table, and the most asynchronous calls that it made at once. What the table does
 * not say to be local is a file server.
 */
function counted(table: string): { readonly fs: FileSystem; readonly most: () => number } {
  let [running, most] = [0, 0];
  const soon = Object.entries(nodeFileSystem).map(([name, real]) => [
    name,
    async (...args: unknown[]): Promise<unknown> => {
      most = Math.max(most, (running += 1));
      try {
        if (name === 'statfs') return { type: NFS };
        return await (real as (...args: unknown[]) => Promise<unknown>)(...args);
      } finally {
        running -= 1;
      }
    },
  ]);
  const open: typeof nodeFileSystem.sync.open = (path, flags, mode) =>
    nodeFileSystem.sync.open(path === '/proc/self/mountinfo' ? table : path, flags, mode);
  const sync = { ...nodeFileSystem.sync, open };
  const fs = Object.fromEntries(soon) as Omit<FileSystem, 'sync'>;
  return { fs: { ...fs, sync }, most: () => most };
}

describe.runIf(process.platform === 'linux')('on Linux', () => {
  test.each([
    ['on a disk, three files are written at the same time: a thread is left to others', 'ext4', 3],
    ['on a file server, which may never answer, no two', 'nfs', 1],
  ])('%s', async (_, type, wanted) => {
    const { directory, table } = arrange(type);
    const { fs, most } = counted(table);
    const volume = new AtomicVolume(directory, { fs });
    for (const content of ['first', 'second']) {
      await volume.write({ ...files(30, content), a: content, b: content, c: content, d: content });
      expect(readFileSync(join(directory, 'conf2/key-29'), 'utf8')).toBe(content);
      expect(readFileSync(join(directory, 'd'), 'utf8')).toBe(content);
    }
    expect(most()).toBe(wanted);
  });

  test('in memory, where all calls are synchronous, the event loop has turns', async () => {
    const { directory, table } = arrange('tmpfs');
    const { fs, most } = counted(table);
    const volume = new AtomicVolume(directory, { fs });
    let turns = 0;
    const turn = (): void => {
      turns += 1;
      timer = setImmediate(turn);
    };
    let timer = setImmediate(turn);
    await volume.write(Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`${index}`, 'x'])));
    clearImmediate(timer);
    expect(turns).toBeGreaterThan(5);
    expect(most()).toBeLessThanOrEqual(1);
  });

  test('the failure of one of many files names it, and leaves nothing behind', async () => {
    const { directory, table } = arrange('ext4');
    const { fs } = counted(table);
    const failing: FileSystem = {
      ...fs,
      open: (path, flags, mode) =>
        path.endsWith('/k7') && mode !== undefined
          ? Promise.reject(Object.assign(new Error('full'), { code: 'ENOSPC' }))
          : fs.open(path, flags, mode),
    };
    const volume = new AtomicVolume(directory, { fs: failing });
    const wanted = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`k${index}`, 'x']));
    await expect(volume.write(wanted)).rejects.toMatchObject({
      code: 'ERR_WRITE_NO_SPACE',
      step: 'create',
      path: join(directory, 'k7'),
      published: false,
    });
    expect(nodeFileSystem.sync.readdir(directory)).toEqual([]);
  });
});
