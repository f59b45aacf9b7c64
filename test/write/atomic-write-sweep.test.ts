/** What writers that died left behind is removed, and nothing else. */
import {
  constants,
  existsSync,
  lstatSync,
  readFileSync,
  readdirSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

import {
  atomicWriteFile,
  atomicWriteFileSync,
  isTemporaryName,
  nodeFileSystem,
  type FileSystem,
} from 'resilient-watcher';
import { FakeClock } from 'resilient-watcher/testing';
import { expect, test, vi } from 'vitest';

import { systemClock } from '../../src/core/clock.js';
import { debris } from '../support/debris.js';
import { errno, faultyFileSystem } from '../support/faulty-file-system.js';
import {
  ScriptedFileSystem,
  nameOfTheDead,
  slowFileSystem,
  withoutDescriptor,
} from '../support/scripted-file-system.js';
import { existing } from './written-file.js';

const OTHER_CONTAINER = `.rw-${'ab'.repeat(8)}.zzz_zzz.1.5.${'0'.repeat(32)}.tmp`;

test('files left by a dead process are swept by the next write, those of a possibly live one are not', async () => {
  const { path, directory } = existing();
  const dead = nameOfTheDead('file');
  const strangers = ['.rw-mine', '.file.tmp', OTHER_CONTAINER];
  for (const name of [dead, ...strangers]) writeFileSync(join(directory, name), 'half');
  await atomicWriteFile(path, 'new');
  expect(debris(directory, 'file').sort()).toEqual([...strangers].sort());
  renameSync(join(directory, OTHER_CONTAINER), join(directory, dead));
  atomicWriteFileSync(path, 'newer', { sweep: false });
  expect(readdirSync(directory)).toContain(dead);
  // As by another process: this one has swept the directory a moment ago.
  atomicWriteFileSync(path, 'newest', { fs: { ...nodeFileSystem } });
  expect(readdirSync(directory)).not.toContain(dead);
});

test.each(['ENOSPC', 'EDQUOT'])(
  'the files of a dead process are swept when a write fails with %s, because they take space',
  async (code) => {
    const { path, directory } = existing();
    const fs = new ScriptedFileSystem({ always: { write: code } }).port;
    for (const write of [atomicWriteFile, atomicWriteFileSync]) {
      writeFileSync(join(directory, nameOfTheDead('file')), 'half');
      await expect((async () => write(path, 'new', { fs: { ...fs } }))()).rejects.toMatchObject({
        code: 'ERR_WRITE_NO_SPACE',
        step: 'write',
      });
      expect(debris(directory, 'file')).toEqual([]);
    }
  },
);

test('a file of another container counts as abandoned when it was not touched for a day by the clock of the file system', async () => {
  const { path, directory } = existing();
  const orphan = join(directory, OTHER_CONTAINER);
  writeFileSync(orphan, 'half');
  const HOUR_NS = 3_600_000_000_000n;
  const aged = (hours: bigint): FileSystem => {
    return slowFileSystem({
      lstat: async (of) => {
        const stat = await nodeFileSystem.lstat(of);
        if (withoutDescriptor(of) === orphan) {
          stat.ctimeNs -= hours * HOUR_NS;
          stat.mtimeNs = 0n;
        }
        return stat;
      },
    });
  };
  await atomicWriteFile(path, '1', { fs: aged(23n) });
  expect(existsSync(orphan)).toBe(true);
  await atomicWriteFile(path, '2', { fs: aged(25n) });
  expect(existsSync(orphan)).toBe(false);
});

test.each(['write', 'open'] as const)(
  'a day-old file of another container is removed when %s finds a local disk full, although the time of the disk is unknown',
  async (name) => {
    const { path, directory } = existing();
    const orphan = join(directory, OTHER_CONTAINER);
    const fs = faultyFileSystem((called, args) => {
      const isToWrite = called === 'open' && ((args[1] as number) & constants.O_CREAT) !== 0;
      if (called === name && (name === 'write' || isToWrite)) throw errno('ENOSPC');
      return undefined;
    });
    const DAY_MS = 24 * 3_600_000;
    for (const write of [atomicWriteFile, atomicWriteFileSync]) {
      writeFileSync(orphan, 'half');
      await expect((async () => write(path, 'new', { fs }))()).rejects.toMatchObject({
        step: name === 'open' ? 'create' : 'write',
      });
      expect(existsSync(orphan)).toBe(true);
      const clock = vi.spyOn(systemClock, 'now').mockReturnValue(Date.now() + DAY_MS + 60_000);
      await expect((async () => write(path, 'new', { fs }))()).rejects.toThrow();
      clock.mockRestore();
      expect(existsSync(orphan)).toBe(false);
    }
  },
);

test('a writer that waits for its data touches its file every hour', async () => {
  const { path, directory } = existing();
  const clock = new FakeClock();
  let give: ((chunk: string | undefined) => void) | undefined;
  async function* slow(): AsyncGenerator<string> {
    for (;;) {
      const chunk = await new Promise<string | undefined>((resolve) => (give = resolve));
      if (chunk === undefined) return;
      yield chunk;
    }
  }
  const writing = atomicWriteFile(path, slow(), { clock });
  while (clock.pending === 0) await clock.advance(0);
  const [name = ''] = debris(directory, 'file');
  expect(isTemporaryName(name)).toBe(true);
  const touched = (): bigint => lstatSync(join(directory, name), { bigint: true }).ctimeNs;
  const before = touched();
  while (touched() === before) await clock.advance(3_600_000);
  // Another writer of the same directory leaves it alone.
  await atomicWriteFile(`${path}.other`, 'x');
  expect(readdirSync(directory)).toContain(name);
  give?.('new');
  while (readFileSync(path, 'utf8') !== 'new') {
    give?.(undefined);
    await clock.advance(0);
  }
  await writing;
  expect(clock.pending).toBe(0);
});
