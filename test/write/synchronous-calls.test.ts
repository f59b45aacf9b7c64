/** Which calls of a write are made on the event loop: where is the directory, by the mount table and by `statfs`? */
import { constants, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { atomicWriteFile, nodeFileSystem, type FileSystem, type FileSystemCalls } from 'resilient-watcher';
import { describe, expect, onTestFinished, test, vi } from 'vitest';

import { systemClock } from '../../src/core/clock.js';
import { arrange } from '../support/mount-table.js';
import { nameOfTheDead } from '../support/scripted-file-system.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

interface Called {
  readonly name: string;
  readonly args: readonly unknown[];
  readonly isSynchronous: boolean;
}

const EXT4 = 0xef53;
const NFS = 0x6969;

/** The real file system behind a mount table of our own. `statfs` says `magic`, as if it were asked there. */
function recorded(table: string, magic: number): { fs: FileSystem; calls: Called[] } {
  const calls: Called[] = [];
  let isReadingTable = false;
  const wrap = (name: keyof FileSystemCalls, real: object, isSynchronous: boolean) => {
    return (...args: unknown[]): unknown => {
      if (typeof args[0] === 'string') isReadingTable = args[0] === '/proc/self/mountinfo';
      if (isReadingTable) args = args.map((arg) => (typeof arg === 'string' ? table : arg));
      else calls.push({ name, args, isSynchronous });
      if (name === 'statfs') return isSynchronous ? { type: magic } : Promise.resolve({ type: magic });
      return (real as Record<string, (...args: unknown[]) => unknown>)[name]?.(...args);
    };
  };
  const names = Object.keys(nodeFileSystem.sync) as (keyof FileSystemCalls)[];
  const all = (real: object, isSynchronous: boolean): object =>
    Object.fromEntries(names.map((name) => [name, wrap(name, real, isSynchronous)]));
  const fs = { ...all(nodeFileSystem, false), sync: all(nodeFileSystem.sync, true) };
  return { fs: fs as unknown as FileSystem, calls };
}

const namesOf = (calls: readonly Called[], isSynchronous: boolean): string[] =>
  calls.filter((call) => call.isSynchronous === isSynchronous).map(({ name }) => name);

describe.runIf(process.platform === 'linux')('a write', () => {
  test('makes every call on the event loop if all file systems are local and the directory is in memory', async () => {
    const { directory, table } = arrange('tmpfs');
    const { fs, calls } = recorded(table, NFS);
    await atomicWriteFile(join(directory, 'file'), 'data', { fs });
    expect(namesOf(calls, false)).toEqual([]);
    expect(namesOf(calls, true)).not.toContain('statfs');
  });

  test('makes only lookups on the event loop if the directory is on a disk', async () => {
    const { directory, table } = arrange('ext4');
    const { fs, calls } = recorded(table, NFS);
    await atomicWriteFile(join(directory, 'file'), 'data', { fs });
    expect(namesOf(calls, false)).toEqual(['open', 'write', 'rename', 'fsync']);
  });

  test.each(['nfs4', 'fuse.sshfs', 'autofs', 'never-heard-of'])(
    'calls statfs for its directory, in the thread pool, if a file system of type %s is mounted anywhere',
    async (other) => {
      const { directory, table } = arrange('ext4', other);
      const { fs, calls } = recorded(table, EXT4);
      await atomicWriteFile(join(directory, 'file'), 'data', { fs });
      expect(namesOf(calls, false)).toEqual(['statfs', 'open', 'write', 'rename', 'fsync']);
      const remote = recorded(table, NFS);
      await atomicWriteFile(join(directory, 'file'), 'data', { fs: remote.fs });
      expect(namesOf(remote.calls, true)).toEqual([]);
    },
  );

  test('makes no synchronous call on a file system that was mounted after the table was read', async () => {
    const { directory, table } = arrange('ext4');
    writeFileSync(table, readFileSync(table, 'utf8').replace(/^1 1 \S+/, '1 1 0:8'));
    const { fs, calls } = recorded(table, NFS);
    await atomicWriteFile(join(directory, 'file'), 'data', { fs });
    // It takes opening the directory to see it.
    const afterwards = calls.slice(calls.findIndex(({ name }) => name === 'statfs'));
    expect(namesOf(afterwards, true)).toEqual([]);
  });
});

describe.runIf(process.platform === 'linux')('on a disk', () => {
  const write = async (data: string | string[], mode?: number): Promise<Called[]> => {
    const { directory, table } = arrange('ext4');
    const { fs, calls } = recorded(table, EXT4);
    await atomicWriteFile(join(directory, 'file'), data, { fs, durability: 'file', mode });
    return calls;
  };
  const isSynced = (calls: readonly Called[]): boolean =>
    calls.some(({ name, args }) => name === 'open' && ((args[1] as number) & constants.O_SYNC) !== 0);
  const syncs = (calls: readonly Called[]): number => calls.filter(({ name }) => name === 'fsync').length;

  test('data that is written in one call is synced by the same call', async () => {
    const calls = await write('data');
    expect([isSynced(calls), syncs(calls)]).toEqual([true, 0]);
  });

  test.each([
    { what: 'no data', data: '' },
    { what: 'data in chunks', data: ['one', 'two'] },
    { what: 'data of more bytes than one call writes', data: 'x'.repeat(9 * 2 ** 20) },
    { what: 'a file whose mode has to be changed', data: 'data', mode: 0o644 },
  ])('$what is synced once, at the end', async ({ data, mode }) => {
    const calls = await write(data, mode);
    expect([isSynced(calls), syncs(calls)]).toEqual([false, 1]);
  });

  test('a group that turns out to be different is set and synced, too', async () => {
    const { directory, table } = arrange('ext4');
    const path = join(directory, 'file');
    writeFileSync(path, 'old', { mode: 0o600 });
    const { fs, calls } = recorded(table, EXT4);
    // The new file has another group, as in a directory with the set-group-id bit.
    const fstat: FileSystemCalls['fstat'] = (fd) => {
      const stat = nodeFileSystem.sync.fstat(fd);
      return stat.isFile() ? Object.assign(stat, { gid: stat.gid + 1n }) : stat;
    };
    const sync = { ...nodeFileSystem.sync, ...fs.sync, fstat };
    await atomicWriteFile(path, 'new', { fs: { ...fs, sync }, durability: 'file', sweep: false });
    const names = calls.map(({ name }) => name);
    expect(names.slice(names.indexOf('fchown'))).toEqual(['fchown', 'fsync', 'close', 'rename', 'close']);
  });
});

test('a directory is listed for the files of killed writers at the first write, not at every write', async () => {
  const directory = temporaryDirectory();
  const { fs, calls } = recorded('/no/table', 0);
  writeFileSync(join(directory, nameOfTheDead('file')), 'half');
  for (let count = 0; count < 5; count += 1) await atomicWriteFile(join(directory, 'file'), 'data', { fs });
  const count = (wanted: string): number => calls.filter(({ name }) => name === wanted).length;
  expect([count('readdir'), count('unlink')]).toEqual([1, 1]);
  // Each directory by itself, and again after a while.
  mkdirSync(join(directory, 'other'));
  await atomicWriteFile(join(directory, 'other/file'), 'data', { fs });
  expect(count('readdir')).toBe(2);
  writeFileSync(join(directory, nameOfTheDead('file')), 'half');
  const later = systemClock.monotonic() + 60_000;
  const clock = vi.spyOn(systemClock, 'monotonic').mockReturnValue(later);
  onTestFinished(() => clock.mockRestore());
  await atomicWriteFile(join(directory, 'file'), 'data', { fs });
  expect([count('readdir'), count('unlink')]).toEqual([3, 2]);
});
