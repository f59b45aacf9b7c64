/** Renames on Windows, where scanners hold files open for moments. The system is a stand-in; the files are real. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { atomicWriteFile } from 'resilient-watcher';
import { FakeClock } from 'resilient-watcher/testing';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';

import type { FileSystem } from '../../src/core/ports/file-system.js';
import { errno } from '../support/faulty-file-system.js';
import { slowFs } from '../support/intercepted-fs.js';
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
      return slowFs({
        rename: ({ make }) => {
          if ((refused += 1) <= times) throw errno(code);
          return make();
        },
      });
    }

    async function write(path: string, times: number): Promise<unknown> {
      const clock = new FakeClock();
      let result: unknown;
      const work = atomicWriteFile(path, 'new', { fs: heldOpen(times), clock });
      work.then(
        (value) => (result = value),
        (error: unknown) => (result = error),
      );
      while (result === undefined) await clock.advance(10);
      expect(clock.pending).toBe(0);
      return result;
    }

    test('is replaced as soon as it is closed', async () => {
      const path = join(temporaryDirectory(), 'file');
      expect(await write(path, 8)).toMatchObject({ written: true });
      expect(readFileSync(path, 'utf8')).toBe('new');
    });

    test('makes the write fail when it is open for more than two seconds, and nothing is left behind', async () => {
      const directory = temporaryDirectory();
      expect(await write(join(directory, 'file'), Infinity)).toMatchObject({
        step: 'rename',
        published: false,
      });
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
  await expect(atomicWriteFile(path, 'new', { fs: slowFs({ rename }), clock })).rejects.toThrow();
  expect(attempts).toBe(1);
});
