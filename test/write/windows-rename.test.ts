/** Renames on Windows, where scanners hold files open for moments. The system is a stand-in; the files are real. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { AtomicVolume, atomicWriteFile } from 'resilient-watcher';
import { FakeClock } from 'resilient-watcher/testing';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';

import type { FileSystem } from '../../src/core/ports/file-system.js';
import { errno } from '../support/errno.js';
import { fsWith, statsWith, type Called } from '../support/intercepted-fs.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

/** Until the test ends, the library takes the system for Windows. */
function pretendWindows(): void {
  const platform = Object.getOwnPropertyDescriptor(process, 'platform') ?? {};
  Object.defineProperty(process, 'platform', { ...platform, value: 'win32' });
  onTestFinished(() => void Object.defineProperty(process, 'platform', platform));
}

describe.each(['EPERM', 'EACCES', 'EBUSY'])(
  'on Windows, a file that another process holds open (%s)',
  (code) => {
    beforeEach(pretendWindows);

    /** Refuses a number of renames. */
    function heldOpen(times: number): FileSystem {
      let refused = 0;
      return fsWith(
        {
          rename: ({ make }) => {
            if ((refused += 1) <= times) throw errno(code);
            return make();
          },
        },
        'remote',
      );
    }

    let waitedMs = 0;

    async function write(path: string, times: number): Promise<unknown> {
      const clock = new FakeClock();
      const began = clock.monotonic();
      let result: unknown;
      const work = atomicWriteFile(path, 'new', { fs: heldOpen(times), clock });
      work.then(
        (value) => (result = value),
        (error: unknown) => (result = error),
      );
      while (result === undefined) await clock.advance(100);
      expect(clock.pending).toBe(0);
      waitedMs = clock.monotonic() - began;
      return result;
    }

    test('is replaced as soon as it is closed', async () => {
      const path = join(temporaryDirectory(), 'file');
      expect(await write(path, 8)).toMatchObject({ written: true });
      expect(readFileSync(path, 'utf8')).toBe('new');
    });

    test('makes the write fail when it is open for more than a minute, and nothing is left behind', async () => {
      const directory = temporaryDirectory();
      expect(await write(join(directory, 'file'), Infinity)).toMatchObject({
        step: 'rename',
        published: false,
        code: 'ERR_WRITE_ACCESS',
        message: expect.stringMatching(/holds the file open(?!.*(immutable|sticky|subPath))/) as unknown,
      });
      expect(waitedMs).toBeGreaterThanOrEqual(60_000);
      expect(readdirSync(directory)).toEqual([]);
    });

    test('is no longer waited for when the signal aborts', async () => {
      const directory = temporaryDirectory();
      const clock = new FakeClock();
      const abort = new AbortController();
      const { signal } = abort;
      const work = atomicWriteFile(join(directory, 'file'), 'new', { fs: heldOpen(Infinity), clock, signal });
      const outcome = work.catch((error: unknown) => error);
      while (clock.pending === 0) await clock.advance(0);
      abort.abort(new Error('enough'));
      expect(await outcome).toBe(signal.reason);
      expect(readdirSync(directory)).toEqual([]);
    });
  },
);

test.each(['EPERM', 'EACCES', 'ENOSPC'])('on other systems, %s is final', async (code) => {
  const clock = new FakeClock();
  let attempts = 0;
  const rename = (): never => {
    attempts += 1;
    throw errno(code);
  };
  const path = join(temporaryDirectory(), 'file');
  await expect(atomicWriteFile(path, 'new', { fs: fsWith({ rename }, 'remote'), clock })).rejects.toThrow();
  expect(attempts).toBe(1);
});

test('on Windows, a volume is refused', async () => {
  pretendWindows();
  const directory = temporaryDirectory();
  const volume = new AtomicVolume(directory);
  const refusal = { code: 'ERR_WRITE_UNSUPPORTED', published: false };
  await expect(volume.write({ key: 'value' })).rejects.toMatchObject(refusal);
  await expect(volume.clear()).rejects.toMatchObject(refusal);
  await volume.close();
  expect(readdirSync(directory)).toEqual([]);
});

test.each([
  ['mode', { mode: 0o600 }],
  ['owner', { owner: { uid: 7, gid: 7 } }],
])('where every file has the same %s, one that is as wanted is not written again', async (_, wanted) => {
  const path = join(temporaryDirectory(), 'file');
  // As on Windows, and on mounts with one mode and owner.
  const shown = statsWith((stat) => {
    if (stat.isFile()) Object.assign(stat, { mode: 0o100666n, uid: 0n, gid: 0n });
  });
  const renames: unknown[] = [];
  const rename = ({ make, args }: Called): unknown => {
    renames.push(args);
    return make();
  };
  const ignored = (): null => null;
  const fs = fsWith({ ...shown, fchmod: ignored, fchown: ignored, rename }, 'remote');
  const options = { ...wanted, ifChanged: true, fs };
  expect(await atomicWriteFile(path, 'one', options)).toMatchObject({ written: true });
  expect(await atomicWriteFile(path, 'one', options)).toMatchObject({ written: false });
  expect(await atomicWriteFile(path, 'two', options)).toMatchObject({ written: true });
  expect(renames).toHaveLength(2);
  expect(readdirSync(join(path, '..'))).toEqual(['file']);
});
