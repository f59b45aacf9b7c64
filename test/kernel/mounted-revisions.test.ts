/**
 * What is mounted in a volume, and is not removed with it. A mount may be of the same file system, and then has the same
 * device number.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { AtomicVolume, atomicWriteFile } from 'resilient-watcher';
import { describe, expect, onTestFinished, test } from 'vitest';

import type { FileSystem } from '../../src/core/ports/file-system.js';
import { temporaryName } from '../../src/write/sweep.js';
import { errno } from '../support/errno.js';
import { fsWith, type Called } from '../support/intercepted-fs.js';
import { inMountNamespace } from '../support/namespace.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const PLANTED = '..2020_01_01_00_00_00.1';

function bind(source: string, target: string): void {
  execFileSync('mount', ['--bind', source, target]);
  // Fails if it was unmounted with the mount that it is on.
  onTestFinished(() => void spawnSync('umount', ['-l', target]));
}

/** A directory, or a file, that must keep what is in it. */
function precious(): { directory: string; file: string; expectKept(): void } {
  const directory = temporaryDirectory();
  mkdirSync(join(directory, 'deep'));
  const file = join(directory, 'a');
  writeFileSync(file, 'precious');
  writeFileSync(join(directory, 'deep/b'), 'precious');
  const expectKept = (): void => {
    expect(readdirSync(directory, { recursive: true }).sort()).toEqual(['a', 'deep', 'deep/b']);
    expect(readFileSync(file, 'utf8')).toBe('precious');
  };
  return { directory, file, expectKept };
}

const isOfProc = (path: unknown): boolean => String(path).startsWith('/proc/');

/** Entries cannot be reached through a descriptor, and the tables of the kernel cannot be read. */
const withoutProc = (): FileSystem =>
  fsWith(
    Object.fromEntries(
      (['lstat', 'open', 'readlink'] as const).map((name) => [
        name,
        ({ args, make }: Called) => {
          if (isOfProc(args[0])) throw errno('ENOENT');
          return make();
        },
      ]),
    ),
    'hidden',
  );

/** Entries are reached through a descriptor, which says nothing of its mount, as in old kernels and gVisor. */
const withoutIds = (): FileSystem =>
  fsWith({
    open: ({ args, make }) => {
      if (String(args[0]).includes('/fdinfo/')) throw errno('ENOENT');
      return make();
    },
  });

const systems: readonly [string, () => FileSystem | undefined][] = [
  ['with ids of mounts', () => undefined],
  ['without ids of mounts', withoutIds],
  ['without /proc', withoutProc],
];

inMountNamespace(import.meta.url, () => {
  describe.each(systems)('a directory that is mounted in a volume is not emptied (%s)', (_, system) => {
    const open = async (): Promise<AtomicVolume> => {
      const volume = new AtomicVolume(temporaryDirectory(), { fs: system() });
      await volume.write({ key: '1', 'conf.d/x': '1', 'conf.d/deep/y': '1' });
      return volume;
    };
    /** Writes or clears, and expects to hear of the mount. */
    const remove = async (volume: AtomicVolume, operation: 'write' | 'clear'): Promise<void> => {
      const code = 'ERR_WRITE_MOUNTED';
      if (operation === 'clear') await expect(volume.clear()).rejects.toMatchObject({ code });
      else expect(await volume.write({ key: '2' })).toMatchObject({ changed: true });
      expect(volume.status().lastError).toMatchObject({
        code,
        message: expect.stringContaining('is a mount point; unmount it') as string,
      });
    };

    test.each([
      ['write', 'conf.d'],
      ['clear', 'conf.d'],
      ['write', 'conf.d/deep'],
      ['clear', 'conf.d/deep'],
    ] as const)('by %s(): %s of the published revision', async (operation, name) => {
      const volume = await open();
      const mounted = precious();
      bind(mounted.directory, realpathSync(join(volume.directory, name)));
      await remove(volume, operation);
      mounted.expectKept();
    });

    test.each(['write', 'clear'] as const)('by %s(): a whole revision', async (operation) => {
      const volume = await open();
      const mounted = precious();
      bind(mounted.directory, realpathSync(join(volume.directory, '..data')));
      await remove(volume, operation);
      mounted.expectKept();
    });

    test('by write(): what only has the name of a revision, and a mount in a mount', async () => {
      const volume = await open();
      const mounted = precious();
      const inner = precious();
      mkdirSync(join(volume.directory, PLANTED));
      bind(mounted.directory, join(volume.directory, PLANTED));
      bind(inner.directory, join(volume.directory, PLANTED, 'deep'));
      await remove(volume, 'write');
      mounted.expectKept();
      inner.expectKept();
    });

    test('by write(): a directory of a revision that is mounted on itself', async () => {
      const volume = await open();
      const directory = realpathSync(join(volume.directory, 'conf.d'));
      bind(directory, directory);
      await remove(volume, 'write');
      expect(readdirSync(directory, { recursive: true }).sort()).toEqual(['deep', 'deep/y', 'x']);
    });

    test('by write(): a directory that is empty', async () => {
      const volume = await open();
      bind(temporaryDirectory(), realpathSync(join(volume.directory, 'conf.d')));
      await remove(volume, 'write');
    });

    test.each(['write', 'clear'] as const)('by %s(): a file', async (operation) => {
      const volume = await open();
      const mounted = precious();
      bind(mounted.file, realpathSync(join(volume.directory, 'conf.d/x')));
      const code = 'ERR_WRITE_MOUNTED';
      if (operation === 'clear') await expect(volume.clear()).rejects.toMatchObject({ code });
      else await volume.write({ key: '2' });
      expect(volume.status().lastError).toMatchObject({ code });
      mounted.expectKept();
    });

    test('by write() that fails: what was mounted in the revision that it was filling', async () => {
      const fs = system() ?? fsWith({});
      const mounted = precious();
      const directory = temporaryDirectory();
      let isMounted = false;
      const rename = (from: string, to: string): void => {
        if (!to.endsWith('..data')) {
          fs.renameSync(from, to);
          return;
        }
        const [revision = ''] = readdirSync(directory).filter((name) => /^\.\.\d/.test(name));
        bind(mounted.directory, join(directory, revision, 'conf.d'));
        isMounted = true;
        throw errno('ENOSPC');
      };
      const failing = new Proxy(fs, {
        get(target, property) {
          if (property === 'renameSync') return rename;
          if (property === 'rename')
            return (from: string, to: string, done: (error: unknown) => void) => {
              try {
                rename(from, to);
                done(null);
              } catch (error) {
                done(error);
              }
            };
          return Reflect.get(target, property) as unknown;
        },
      });
      const volume = new AtomicVolume(directory, { fs: failing });
      const writing = volume.write({ key: '1', 'conf.d/x': '1' });
      await expect(writing).rejects.toMatchObject({ code: 'ERR_WRITE_NO_SPACE' });
      expect(isMounted).toBe(true);
      mounted.expectKept();
    });
  });

  test('a mount that appears between the check and the removal keeps what is in it', async () => {
    const mounted = precious();
    const directory = temporaryDirectory();
    await new AtomicVolume(directory).write({ key: '1', 'conf.d/x': '1' });
    const target = realpathSync(join(directory, 'conf.d'));
    let isMounted = false;
    const fs = fsWith({
      unlink: ({ args, make }) => {
        if (!isMounted && String(args[0]).endsWith('/x')) {
          bind(mounted.directory, target);
          isMounted = true;
        }
        return make();
      },
    });
    const volume = new AtomicVolume(directory, { fs });
    await volume.write({ key: '2' });
    expect(isMounted).toBe(true);
    expect(volume.status().lastError).toMatchObject({ code: 'ERR_WRITE_MOUNTED' });
    mounted.expectKept();
  });

  test('what is mounted at the name of an unfinished file or link is not swept', async () => {
    const directory = temporaryDirectory();
    const volume = new AtomicVolume(directory);
    const names = [temporaryName('file'), temporaryName('link')];
    const mounted = names.map((name) => {
      const each = precious();
      mkdirSync(join(directory, name));
      bind(each.directory, join(directory, name));
      return each;
    });
    // As if they were two days old.
    const fs = fsWith({
      lstat: ({ args: [path], make }) => {
        const stat = make() as { ctimeMs: bigint } | undefined;
        const isOld = names.some((name) => String(path).endsWith(`/${name}`));
        return stat && isOld ? Object.assign(stat, { ctimeMs: 0n }) : stat;
      },
    });
    await atomicWriteFile(join(directory, 'file'), '1', { fs });
    await volume.write({ key: '1' });
    await new AtomicVolume(directory, { fs }).write({ key: '2' });
    for (const each of mounted) each.expectKept();
  });
});
