/** The usual write, which is the second one of a process to a file: what if something unusual happens in the middle? */
import {
  constants,
  lstatSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

import { WriteError, atomicWriteFile } from 'resilient-watcher';
import { describe, expect, test } from 'vitest';

import { debris } from '../support/debris.js';
import { arrange } from '../support/mount-table.js';
import { isCrash, ScriptedFileSystem, type Fault } from '../support/scripted-file-system.js';

const faults: readonly Fault[] = ['error', 'error-after', 'crash', 'crash-after'];
const OLD = 'old';
const NEW = 'new '.repeat(100);

/** What happens to the file between the two writes. */
const events = {
  nothing: () => undefined,
  'it is removed': unlinkSync,
  'it becomes a link': (path: string) => {
    unlinkSync(path);
    writeFileSync(`${path}.real`, OLD, { mode: 0o600 });
    symlinkSync(`${path}.real`, path);
  },
  'its mode changes': (path: string) => {
    unlinkSync(path);
    writeFileSync(path, OLD, { mode: 0o644 });
  },
};

/** A file that this process has just written, and the file system through which it did. */
async function writtenFile(type: string): Promise<{
  directory: string;
  path: string;
  fs: ScriptedFileSystem;
  port: ScriptedFileSystem['port'];
  mountTable: string;
}> {
  const { directory, table: mountTable } = arrange(type);
  const path = join(directory, 'file');
  const fs = new ScriptedFileSystem({ mountTable });
  const { port } = fs;
  // The first one finds out how entries are reached, and the second one remembers the file.
  await atomicWriteFile(path, OLD, { fs: port });
  await atomicWriteFile(path, OLD, { fs: port });
  return { directory, path, fs, port, mountTable };
}

const contentOf = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
};

describe.runIf(process.platform === 'linux').each(['ext4', 'tmpfs'])('on %s', (type) => {
  test.each(
    Object.entries(events).flatMap(([event, happen]) => faults.map((fault) => ({ event, happen, fault }))),
  )(
    'a file that was written before is old or new whichever call fails ($fault), if $event meanwhile',
    async ({ happen, fault }) => {
      for (let at = 0, struck = true; struck; at += 1) {
        const { directory, path, fs, port, mountTable } = await writtenFile(type);
        happen(path);
        const before = contentOf(path);
        const afterChange = (): void => {
          const seen = contentOf(path);
          if (seen !== before) expect(seen).toBe(NEW);
        };
        fs.follow({ at, fault, afterChange, mountTable });
        const outcome = await atomicWriteFile(path, NEW, { fs: port }).catch((error: unknown) => error);
        afterChange();
        struck = fs.struck;
        const removal = fs.calls[at]?.name === 'unlink';
        if (outcome instanceof WriteError && !isCrash(outcome.cause)) {
          expect(outcome.published).toBe(contentOf(path) === NEW);
          if (!removal) expect(debris(directory, 'file', 'file.real')).toEqual([]);
        } else if (!(outcome instanceof Error)) expect(contentOf(path)).toBe(NEW);
        fs.bury(directory);
        await atomicWriteFile(path, 'next');
        expect(contentOf(path)).toBe('next');
        expect(debris(directory, 'file', 'file.real')).toEqual([]);
      }
    },
  );

  test('what has taken the place of a file is not replaced, and nothing is left behind', async () => {
    const { directory, path, port } = await writtenFile(type);
    unlinkSync(path);
    mkdirSync(path);
    await expect(atomicWriteFile(path, NEW, { fs: port })).rejects.toMatchObject({
      code: 'ERR_WRITE_NOT_FILE',
    });
    expect(debris(directory, 'file')).toEqual([]);
  });

  test('nothing is created before the path has been examined', async () => {
    const { path, fs, port, mountTable } = await writtenFile(type);
    events['it becomes a link'](path);
    fs.follow({ mountTable });
    const refused = atomicWriteFile(path, NEW, { fs: port, symlink: 'error' });
    await expect(refused).rejects.toMatchObject({ code: 'ERR_WRITE_SYMLINK' });
    const creating = fs.calls.filter(
      ({ name, args }) => name === 'open' && Number(args[1]) & constants.O_CREAT,
    );
    expect(creating).toEqual([]);
  });

  test('a link that has taken its place is followed, or not, as wanted', async () => {
    const { directory, path, port } = await writtenFile(type);
    events['it becomes a link'](path);
    const refused = atomicWriteFile(path, NEW, { fs: port, symlink: 'error' });
    await expect(refused).rejects.toMatchObject({ code: 'ERR_WRITE_SYMLINK', published: false });
    expect(debris(directory, 'file', 'file.real')).toEqual([]);
    await atomicWriteFile(path, NEW, { fs: port });
    expect(lstatSync(path).isSymbolicLink()).toBe(true);
    expect(contentOf(`${path}.real`)).toBe(NEW);
    await atomicWriteFile(path, 'file', { fs: port, symlink: 'replace' });
    expect(lstatSync(path).isSymbolicLink()).toBe(false);
  });

  test('its mode is kept, or set, whatever the one before had', async () => {
    const { path, port } = await writtenFile(type);
    events['its mode changes'](path);
    await atomicWriteFile(path, NEW, { fs: port });
    expect(statSync(path).mode & 0o777).toBe(0o644);
    await atomicWriteFile(path, NEW, { fs: port, mode: 0o640 });
    expect(statSync(path).mode & 0o777).toBe(0o640);
    await atomicWriteFile(path, NEW, { fs: port });
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test('an abort before the rename leaves nothing behind', async () => {
    for (const name of ['open', 'write'] as const) {
      const { directory, path, fs, port, mountTable } = await writtenFile(type);
      const controller = new AbortController();
      fs.follow({
        mountTable,
        afterChange: () => {
          if (fs.names.includes(name)) controller.abort();
        },
      });
      const { signal } = controller;
      await expect(atomicWriteFile(path, NEW, { fs: port, signal })).rejects.toHaveProperty(
        'name',
        'AbortError',
      );
      expect(contentOf(path)).toBe(OLD);
      expect(debris(directory, 'file')).toEqual([]);
    }
  });
});
