/**
 * Mounts that never show an update, wherever they lie in what is watched. The mount table is made up: the files are
 * ordinary ones. Real mounts are in `test/kernel/mounts.test.ts`.
 */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { credentials, ResilientWatcher, SecretFile, TokenFile } from 'resilient-watcher';
import { ConfigLoader, FileProvider, VolumeProvider } from 'resilient-watcher/config';
import { FakeClock, KubeletVolume } from 'resilient-watcher/testing';
import { TlsFiles } from 'resilient-watcher/tls';
import { describe, expect, onTestFinished, test } from 'vitest';

import { fsWith, type Called } from '../support/intercepted-fs.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const ROOT = '1 0 8:1 / / rw - ext4 device rw';
const LINUX = process.platform === 'linux';

/** A table with these mounts: which part of a file system, and where. */
class MountTable {
  #lines: string[] = [];

  readonly fs = fsWith({ each: ({ make }: Called) => make() }, () => [ROOT, ...this.#lines]);

  mount(root: string, point: string): void {
    this.#lines.push(`${this.#lines.length + 2} 1 8:1 ${root} ${point} rw - ext4 device rw`);
  }

  unmount(): void {
    this.#lines = [];
  }
}

/** Files that are mounted by themselves: keys of a Secret, each by `subPath`. */
function mountedKeys(...names: string[]): { directory: string; table: MountTable } {
  const directory = temporaryDirectory();
  const table = new MountTable();
  for (const name of names) {
    writeFileSync(join(directory, name), name);
    table.mount(`/pods/volume-subpaths/v/c/${name}`, join(directory, name));
  }
  return { directory, table };
}

interface Listening {
  on(event: 'warning', listener: (warning: { message: string }) => void): unknown;
  close(): Promise<void>;
}

function heardBy(component: Listening): string[] {
  const heard: string[] = [];
  onTestFinished(() => component.close());
  component.on('warning', ({ message }) => heard.push(message));
  return heard;
}

/** Once a check has found the mount. */
async function expectOneWarning(watcher: ResilientWatcher, heard: readonly string[]): Promise<void> {
  await expect
    .poll(async () => {
      await watcher.check();
      return watcher.status().warnings.map(({ code }) => code);
    })
    .toEqual(['subPath']);
  expect(heard).toHaveLength(1);
}

describe.skipIf(!LINUX)('a file that is mounted by itself', () => {
  type Kind = readonly [string, (directory: string) => ConstructorParameters<typeof ResilientWatcher>];
  const kinds: readonly Kind[] = [
    ['the file', (directory) => [join(directory, 'a')]],
    ['a group', (directory) => [[join(directory, 'a'), join(directory, 'plain')]]],
    ['a directory', (directory) => [directory]],
    ['a tree', (directory) => [directory, { recursive: true }]],
    [
      'a tree above it',
      (directory) => [join(directory, '..', directory.split('/').at(-1) ?? ''), { recursive: true }],
    ],
    ['a directory of links', (directory) => [join(directory, '.links')]],
    ['a tree of links', (directory) => [join(directory, '.links'), { recursive: true }]],
    ['a group of links', (directory) => [[join(directory, '.links/a'), join(directory, '.links/plain')]]],
  ];

  test.each(kinds)(
    'is warned of, once, in %s, and in its status while it is mounted',
    async (_, argumentsFor) => {
      const { directory, table } = mountedKeys('a');
      writeFileSync(join(directory, 'plain'), '');
      mkdirSync(join(directory, '.links'));
      for (const name of ['a', 'plain']) symlinkSync(`../${name}`, join(directory, '.links', name));
      const [path, options] = argumentsFor(directory);
      const clock = new FakeClock();
      const watcher = new ResilientWatcher(path, { ...options, fs: table.fs, clock });
      const heard = heardBy(watcher);
      await watcher.start();
      const message = expect.stringMatching(/^"\S+\/a" is mounted by itself \(subPath/) as string;
      expect(heard).toEqual([message]);
      await watcher.check();
      expect(heard).toHaveLength(1);
      expect(watcher.status().warnings).toEqual([{ code: 'subPath', message }]);
      table.unmount();
      await expect
        .poll(async () => {
          await watcher.check();
          return watcher.status().warnings;
        })
        .toEqual([]);
    },
  );

  test.each(kinds)('is warned of once it appears in %s', async (_, argumentsFor) => {
    const { directory, table } = mountedKeys('a');
    writeFileSync(join(directory, 'plain'), '');
    mkdirSync(join(directory, '.links'));
    for (const name of ['a', 'plain']) symlinkSync(`../${name}`, join(directory, '.links', name));
    table.unmount();
    const [path, options] = argumentsFor(directory);
    const watcher = new ResilientWatcher(path, { ...options, fs: table.fs });
    const heard = heardBy(watcher);
    await watcher.start();
    expect(heard).toEqual([]);
    table.mount('/elsewhere/a', join(directory, 'a'));
    await expectOneWarning(watcher, heard);
  });

  test.each(['', 'a'])(
    'is warned of once it appears to another process, behind whose root is "%s"',
    async (name) => {
      const directory = temporaryDirectory();
      writeFileSync(join(directory, 'a'), '');
      const table = join(temporaryDirectory(), 'mountinfo');
      writeFileSync(table, `${ROOT}\n`);
      const open = ({ args: [path, ...rest], make }: Called) =>
        make([path === `/proc/${process.pid}/mountinfo` ? table : path, ...rest]);
      const watcher = new ResilientWatcher(join('/proc/self/root', directory, name), {
        fs: fsWith({ open }, [ROOT]),
      });
      const heard = heardBy(watcher);
      await watcher.start();
      expect(heard).toEqual([]);
      writeFileSync(table, `${ROOT}\n2 1 8:1 /elsewhere/a ${join(directory, 'a')} rw - ext4 device rw\n`);
      await expectOneWarning(watcher, heard);
    },
  );

  test('is no concern of a target that it is not in', async () => {
    const { directory, table } = mountedKeys('a', '.hidden', 'b.log');
    writeFileSync(join(directory, 'plain'), '');
    mkdirSync(join(directory, 'deep'));
    writeFileSync(join(directory, 'deep/plain'), '');
    const watchers = [
      new ResilientWatcher(join(directory, 'plain'), { fs: table.fs }),
      new ResilientWatcher(join(directory, 'deep'), { fs: table.fs }),
      new ResilientWatcher([join(directory, 'plain'), join(directory, 'deep/plain')], { fs: table.fs }),
      new ResilientWatcher(directory, { recursive: { ignore: ['a', '.hidden', '*.log'] }, fs: table.fs }),
    ];
    for (const watcher of watchers) {
      const heard = heardBy(watcher);
      await watcher.start();
      expect(heard).toEqual([]);
      expect(watcher.status().warnings).toEqual([]);
    }
  });

  test('that is the file a key of a volume leads to, or lies beside the keys, is warned of', async () => {
    const directory = temporaryDirectory();
    const volume = new KubeletVolume(join(directory, 'volume'));
    volume.publish({ key: '1', other: '1' });
    writeFileSync(volume.path('beside'), '');
    for (const [name, options] of [
      ['volume', {}],
      ['', { recursive: true }],
    ] as const) {
      for (const point of [`${volume.revision}/key`, 'beside']) {
        const table = new MountTable();
        table.mount('/elsewhere', join(volume.directory, point));
        const watcher = new ResilientWatcher(join(directory, name), { ...options, fs: table.fs });
        const heard = heardBy(watcher);
        await watcher.start();
        if (name === '' && point === 'beside') continue;
        expect(heard, `${name} ${point}`).toEqual([expect.stringContaining(point)]);
      }
    }
  });

  test('many of them are one warning, which names a few', async () => {
    const { directory, table } = mountedKeys('a', 'b', 'c', 'd', 'e');
    const watcher = new ResilientWatcher(directory, { fs: table.fs });
    const heard = heardBy(watcher);
    await watcher.start();
    const [a, b, c] = ['a', 'b', 'c'].map((name) => `"${join(directory, name)}"`);
    expect(heard).toEqual([expect.stringContaining(`${a}, ${b}, ${c} and 2 more are mounted by themselves`)]);
  });

  test('is warned of by everything that reads it', async () => {
    const { directory, table } = mountedKeys(
      'tls.crt',
      'tls.key',
      'username',
      'password',
      'token',
      'app.yaml',
    );
    const { fs } = table;
    const components = [
      new SecretFile(join(directory, 'password'), { fs }),
      new TokenFile(join(directory, 'token'), { fs }),
      credentials(directory, { fs }),
      new TlsFiles(directory, { fs }),
      new TlsFiles({ cert: join(directory, 'tls.crt'), key: join(directory, 'tls.key') }, { fs }),
    ];
    for (const component of components) {
      const heard = heardBy(component);
      await component.start();
      expect(heard.join(), component.status().name).toContain('mounted by ');
    }
    for (const provider of [
      new FileProvider(join(directory, 'app.yaml'), { fs }),
      new VolumeProvider(directory, { fs }),
    ]) {
      const loader = new ConfigLoader({ sources: [{ provider }] });
      onTestFinished(() => loader.close());
      const codes: string[] = [];
      loader.on('error', (error) => codes.push((error as Error & { code: string }).code));
      await loader.load().catch(() => undefined);
      expect(codes, provider.name).toContain('ERR_CONFIG_FROZEN');
    }
  });
});

describe.skipIf(!LINUX)('a directory of one revision that is mounted in a tree', () => {
  const sceneOf = (): { directory: string; table: MountTable } => {
    const directory = temporaryDirectory();
    mkdirSync(join(directory, 'conf.d'));
    writeFileSync(join(directory, 'conf.d/x'), '1');
    const table = new MountTable();
    table.mount('/volumes/v/..2026_01_01_00_00_00.1/conf.d', join(directory, 'conf.d'));
    return { directory, table };
  };

  test('is warned of by the tree, and not by its parent directory alone', async () => {
    const { directory, table } = sceneOf();
    const tree = new ResilientWatcher(directory, { recursive: true, fs: table.fs });
    const plain = new ResilientWatcher(directory, { fs: table.fs });
    const [heardByTree, heardByPlain] = [heardBy(tree), heardBy(plain)];
    await Promise.all([tree.start(), plain.start()]);
    expect(heardByTree).toEqual([expect.stringContaining('conf.d" is a subPath mount of one revision')]);
    expect(heardByPlain).toEqual([]);
  });
});
