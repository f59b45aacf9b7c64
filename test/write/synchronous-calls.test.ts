/** Which calls of a write are made on the event loop, and how many at once, depending on where the directory is. */
import { constants, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

import { AtomicVolume, atomicWriteFile } from 'resilient-watcher';
import { describe, expect, test } from 'vitest';

import type { FileSystem } from '../../src/core/ports/file-system.js';
import { fsWith, spend, type Called, type Place } from '../support/intercepted-fs.js';
import { aDayLater } from '../support/later.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

/** The real file system at a place, and the calls that were made. */
function recorded(
  place?: Place | readonly string[],
  answers: Partial<Record<string, (call: Called) => unknown>> = {},
): { fs: FileSystem; calls: Called[] } {
  const calls: Called[] = [];
  const fs = fsWith(
    {
      each: (call) => {
        calls.push(call);
        return (answers[call.name] ?? (({ make }: Called) => make()))(call);
      },
    },
    place,
  );
  return { fs, calls };
}

/** The calls in one of their forms, each once, in alphabetical order. */
const namesOf = (calls: readonly Called[], isSynchronous: boolean): string[] =>
  [...new Set(calls.filter((call) => call.isSynchronous === isSynchronous).map(({ name }) => name))].sort();

const write = async (
  place: Place,
  data: string | string[] = 'data',
  options: { mode?: number } = {},
): Promise<Called[]> => {
  const { fs, calls } = recorded(place);
  const directory = temporaryDirectory();
  await atomicWriteFile(join(directory, 'file'), data, { fs, ...options });
  await atomicWriteFile(join(directory, 'file'), data, { fs, ifChanged: true });
  return calls;
};

describe.runIf(process.platform === 'linux')('a write', () => {
  test('makes every call on the event loop if the directory is in memory', async () => {
    expect(namesOf(await write('memory'), false)).toEqual([]);
  });

  test('makes lookups, reads and changes of the open file on the event loop if the directory is on a disk', async () => {
    const calls = await write('disk', 'data', { mode: 0o640 });
    expect(namesOf(calls, true)).toContain('fchmod');
    expect(namesOf(calls, false)).toEqual(['fsync', 'open', 'rename']);
    const opened = calls.filter(({ name, isSynchronous }) => name === 'open' && !isSynchronous);
    for (const { args } of opened) expect(Number(args[1]) & constants.O_CREAT).not.toBe(0);
  });

  test('makes no call that may hang on the event loop if the directory is on a server', async () => {
    // What the kernel says of an open descriptor, it says from memory.
    expect(namesOf(await write('remote'), true)).toEqual(['readlink']);
  });

  test.each([
    ['none on a file system that was mounted after the table was read', 'ext4', []],
    [
      'as on a disk in a Btrfs subvolume, whose device is in no table',
      'btrfs',
      ['close', 'fstat', 'lstat', 'write'],
    ],
  ])('makes these calls on the event loop: %s', async (_, type, wanted) => {
    const { fs, calls } = recorded([`1 0 0:9999 / / rw - ${type} device rw`]);
    await atomicWriteFile(join(temporaryDirectory(), 'file'), 'data', { fs, sweep: false });
    // It takes opening the directory to see where it is.
    const opened = calls.findIndex(({ name }) => name === 'readlink');
    expect(namesOf(calls.slice(opened + 1), true)).toEqual(wanted);
  });

  test('asks statfs where the directory is if the mount table cannot be read', async () => {
    const NFS = 0x6969;
    const [local, remote] = [
      recorded('hidden', { statfs: () => ({ type: 0xef53 }) }),
      recorded('hidden', { statfs: () => ({ type: NFS }) }),
    ];
    const path = join(temporaryDirectory(), 'file');
    await atomicWriteFile(path, 'data', { fs: local.fs });
    await atomicWriteFile(path, 'data', { fs: remote.fs });
    expect(namesOf(local.calls, true)).toContain('lstat');
    expect(namesOf(remote.calls, true)).toEqual(['readlink']);
  });

  test('opens what is behind a link of /proc through the thread pool, also by another link to it', async () => {
    const { fs, calls } = recorded('disk');
    const directory = temporaryDirectory();
    const link = join(temporaryDirectory(), 'link');
    symlinkSync(`/proc/self/root${directory}`, link);
    await atomicWriteFile(join(link, 'file'), 'data', { fs });
    const opened = calls.filter(
      ({ name, args }) => name === 'open' && String(args[0]).startsWith('/proc/self/root'),
    );
    expect(opened.length).toBeGreaterThan(0);
    expect(namesOf(opened, true)).toEqual([]);
  });

  test('writes and reads large data through the thread pool wherever it is', async () => {
    const large = 'x'.repeat(100_000);
    expect(namesOf(await write('memory', large), false)).toEqual(['read', 'write']);
    expect(namesOf(await write('disk', large), false)).toContain('read');
  });
});

test('a directory is listed for the files of killed writers at the first write, and once an hour', async () => {
  const directory = temporaryDirectory();
  const { fs, calls } = recorded();
  const write = (name: string): Promise<unknown> => atomicWriteFile(join(directory, name), 'data', { fs });
  const listed = (): number => calls.filter(({ name }) => name === 'readdir').length;
  for (let count = 0; count < 5; count += 1) await write('file');
  expect(listed()).toBe(1);
  // Each directory by itself.
  mkdirSync(join(directory, 'other'));
  await write('other/file');
  expect(listed()).toBe(2);
  await aDayLater(() => write('file'));
  expect(listed()).toBe(3);
});

/** How long each call takes at least, ms: on a fast machine, all of the work would fit into a few turns. */
const CALL_MS = 0.1;

/** The real file system, as if it were in memory, with slow calls. */
const slowMemory = (): FileSystem => fsWith({ each: () => spend(CALL_MS) }, 'memory');

/** A number of turns of the event loop while something runs. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  const turn = (): void => {
    turns += 1;
    timer = setImmediate(turn);
  };
  let timer = setImmediate(turn);
  await work();
  clearImmediate(timer);
  return turns;
}

describe.runIf(process.platform === 'linux')(
  'in memory, where all calls are synchronous, the event loop has turns',
  () => {
    test('during a write of many files', async () => {
      const volume = new AtomicVolume(temporaryDirectory(), { fs: slowMemory() });
      const files = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`${index}`, 'x']));
      expect(await turnsDuring(() => volume.write(files))).toBeGreaterThan(5);
      expect(await turnsDuring(() => volume.write(files))).toBeGreaterThan(5);
    });

    test('between many writes that are awaited one after another', async () => {
      const fs = slowMemory();
      const path = join(temporaryDirectory(), 'file');
      const turns = await turnsDuring(async () => {
        for (let count = 0; count < 100; count += 1) await atomicWriteFile(path, 'x', { fs });
      });
      expect(turns).toBeGreaterThan(5);
    });
  },
);
