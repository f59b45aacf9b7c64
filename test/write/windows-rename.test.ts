/** Renames on Windows, where scanners hold files open for moments. The system is a stand-in; the files are real. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { atomicWriteFile } from 'resilient-watcher';
import { FakeClock } from 'resilient-watcher/testing';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';

import { nodeFileSystem, type FileSystem } from '../../src/core/file-system.js';
import { renameRetryMs } from '../../src/write/rename-file.js';
import { slowFileSystem } from '../support/scripted-file-system.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

/** Until the test ends, the library takes the system for Windows. */
function pretendWindows(): void {
  const platform = Object.getOwnPropertyDescriptor(process, 'platform') ?? {};
  Object.defineProperty(process, 'platform', { ...platform, value: 'win32' });
  onTestFinished(() => void Object.defineProperty(process, 'platform', platform));
}

test.each([
  ['EPERM', { win32: true, linux: false, darwin: false }],
  ['EACCES', { win32: true, linux: false, darwin: false }],
  ['EBUSY', { win32: true, linux: true, darwin: true }],
  ['ENOSPC', { win32: false, linux: false, darwin: false }],
])('%s is temporary on %o', (code, systems) => {
  for (const [system, isTemporary] of Object.entries(systems)) {
    expect(renameRetryMs(code, system as NodeJS.Platform) > 0).toBe(isTemporary);
  }
});

describe.each(['EPERM', 'EACCES', 'EBUSY'])(
  'on Windows, a file that another process holds open (%s)',
  (code) => {
    beforeEach(pretendWindows);

    /** Refuses a number of renames. */
    function heldOpen(times: number): FileSystem {
      let refused = 0;
      const rename: FileSystem['rename'] = (from, to) =>
        (refused += 1) <= times
          ? Promise.reject(Object.assign(new Error(code), { code }))
          : nodeFileSystem.rename(from, to);
      return slowFileSystem({ rename });
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
