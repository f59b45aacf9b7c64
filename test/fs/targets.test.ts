/** What targets find and what they want watched, observed without a watcher. */
import { mkdirSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { nodeFileSystem, type FileSystemCalls } from 'resilient-watcher';
import { KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import { runAsync, runSliced, runSync } from '../../src/fs/effects.js';
import type { Found, Observation, Target } from '../../src/fs/observation.js';
import { FileSnapshot } from '../../src/fs/snapshot.js';
import { PathTarget } from '../../src/fs/targets/path-target.js';
import { TreeTarget } from '../../src/fs/targets/tree-target.js';
import { errno } from '../support/faulty-file-system.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const LIMITS = { maxContentBytes: 1_000, maxTotalBytes: 10_000, maxFiles: 100 };

function tree(path: string, { followLinks = false } = {}): TreeTarget {
  return new TreeTarget(path, { ...LIMITS, content: true, ignore: [], followLinks });
}

function observe(target: Target, calls: FileSystemCalls = nodeFileSystem.sync): Observation {
  target.touch?.();
  return runSync(target.observe(), calls);
}

/** The file system of a process that may not list or look into this directory. */
function denying(directory: string): FileSystemCalls {
  const denied = <T>(real: (path: string) => T) => {
    return (path: string): T => {
      if (path === directory || path.startsWith(`${directory}/`)) throw errno('EACCES', path);
      return real(path);
    };
  };
  const { sync } = nodeFileSystem;
  const lstat = (path: string): ReturnType<typeof sync.lstat> =>
    path === directory ? sync.lstat(path) : denied(sync.lstat)(path);
  return { ...sync, lstat, scandir: denied(sync.scandir), open: denied((path) => sync.open(path, 0)) };
}

function texts(seen: Observation): unknown {
  if (seen.kind !== 'found') return seen.kind;
  return Object.fromEntries(
    [...seen.snapshot.files].map(([key, { content }]) => [key, String(content)]).sort(),
  );
}

const watched = ({ chain }: Observation): string[] => chain.directories.map(({ path }) => path);

describe('a tree', () => {
  test('keeps the files of a directory that became unreadable, reports it, and continues when it is readable', () => {
    const root = temporaryDirectory();
    for (const directory of ['open', 'closed', 'closed/deep']) {
      mkdirSync(join(root, directory));
      writeFileSync(join(root, directory, 'file'), 'old');
    }
    symlinkSync('file', join(root, 'closed', 'link'));
    const target = tree(root);
    expect(observe(target)).toMatchObject({ unreadable: undefined });
    writeFileSync(join(root, 'open/file'), 'new');
    const denied = denying(join(root, 'closed'));
    for (let check = 0; check < 3; check += 1) {
      const seen = observe(target, denied);
      expect(texts(seen)).toEqual({
        'open/file': 'new',
        'closed/file': 'old',
        'closed/link': 'old',
        'closed/deep/file': 'old',
      });
      expect((seen as Found).unreadable).toMatchObject({
        code: 'ERR_TARGET_ACCESS',
        path: join(root, 'closed'),
      });
    }
    // A hint from inside leads nowhere either.
    target.touch(join(root, 'closed/file'));
    expect(Object.keys(texts(runSync(target.observe(), denied)) as object)).toHaveLength(4);
    unlinkSync(join(root, 'closed/file'));
    const healed = observe(target);
    expect(texts(healed)).toEqual({ 'open/file': 'new', 'closed/deep/file': 'old' });
    expect(healed).toMatchObject({ unreadable: undefined });
    observe(target, denied);
    rmSync(join(root, 'closed'), { recursive: true });
    expect(texts(observe(target, denied))).toEqual({ 'open/file': 'new' });
  });

  test('omits what could never be read, without being unreadable', () => {
    const root = temporaryDirectory();
    mkdirSync(join(root, 'lost+found'));
    writeFileSync(join(root, 'file'), 'text');
    const seen = observe(tree(root), denying(join(root, 'lost+found')));
    expect(texts(seen)).toEqual({ file: 'text' });
    expect(seen).toMatchObject({ unreadable: undefined });
  });

  test.each(['..2026_01_01_00_00_00.1', '..hand-made'])(
    'never shows the inside of a volume, even while its ..data is missing (%s)',
    (revision) => {
      const root = temporaryDirectory();
      const volume = join(root, 'volume');
      mkdirSync(join(volume, revision), { recursive: true });
      writeFileSync(join(volume, revision, 'key'), 'text');
      symlinkSync(revision, join(volume, '..data'));
      symlinkSync('..data/key', join(volume, 'key'));
      const target = tree(root);
      expect(texts(observe(target))).toEqual({ 'volume/key': 'text' });
      unlinkSync(join(volume, '..data'));
      expect(texts(observe(target))).toEqual({});
      expect(texts(observe(target))).toEqual({});
      symlinkSync(revision, join(volume, '..data'));
      expect(texts(observe(target))).toEqual({ 'volume/key': 'text' });
    },
  );

  test('does not follow a key of a volume whose ..data leads elsewhere', () => {
    const root = temporaryDirectory();
    const victim = temporaryDirectory();
    mkdirSync(join(victim, 'directory'));
    writeFileSync(join(victim, 'directory', 'secret'), 'secret');
    mkdirSync(join(root, 'volume'));
    symlinkSync(victim, join(root, 'volume', '..data'));
    symlinkSync('..data/directory', join(root, 'volume', 'directory'));
    expect(texts(observe(tree(root)))).toEqual({});
  });

  test('watches the directories of the files that its links lead to', () => {
    const root = temporaryDirectory();
    const elsewhere = temporaryDirectory();
    writeFileSync(join(elsewhere, 'file'), 'text');
    symlinkSync(join(elsewhere, 'file'), join(root, 'link'));
    const target = tree(root);
    const seen = observe(target);
    expect(watched(seen)).toContain(elsewhere);
    // The same list, so that comparing it costs nothing.
    expect(observe(target).chain.directories).toBe(seen.chain.directories);
    unlinkSync(join(root, 'link'));
    expect(watched(observe(target))).not.toContain(elsewhere);
  });
});

describe('a volume', () => {
  test('with a revision not named by kubelet watches the revision and the directories in it', () => {
    const volume = join(temporaryDirectory(), 'volume');
    mkdirSync(join(volume, '..hand-made', 'conf.d'), { recursive: true });
    writeFileSync(join(volume, '..hand-made', 'conf.d', 'key'), 'text');
    symlinkSync('..hand-made', join(volume, '..data'));
    const target = new PathTarget(volume, LIMITS);
    expect(watched(observe(target))).toEqual(
      expect.arrayContaining([volume, join(volume, '..hand-made'), join(volume, '..hand-made/conf.d')]),
    );
    expect(runSync(target.resolve(), nodeFileSystem.sync).directories.map(({ path }) => path)).toContain(
      join(volume, '..hand-made'),
    );
  });

  test('published by kubelet does not watch revisions, which would take another watch with every swap', () => {
    const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
    volume.publish({ 'conf.d/key': 'text' });
    const paths = watched(observe(new PathTarget(volume.directory, LIMITS)));
    expect(paths).toContain(volume.directory);
    expect(paths.filter((path) => path.includes('..'))).toEqual([]);
  });
});

/** How many turns the event loop has meanwhile. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let ended = false;
  setImmediate(function count() {
    turns += 1;
    if (!ended) setImmediate(count);
  });
  await work();
  ended = true;
  return turns;
}

test('a directory of large files is read in slices', async () => {
  const directory = temporaryDirectory();
  for (let number = 0; number < 12; number += 1)
    writeFileSync(join(directory, `file-${number}`), Buffer.alloc(1_048_576));
  const limits = { maxContentBytes: 2 ** 21, maxTotalBytes: 2 ** 26, maxFiles: 100 };
  const observing = () => runSliced(new PathTarget(directory, limits).observe(), nodeFileSystem.sync);
  const turns = await turnsDuring(observing);
  expect(turns).toBeGreaterThan(1);
});

test('an empty file takes no memory for content, and a file that does not report its size is read whole', () => {
  const root = temporaryDirectory();
  writeFileSync(join(root, 'empty'), '');
  symlinkSync('/proc/self/status', join(root, 'process'));
  const seen = observe(new PathTarget(join(root, 'empty'), LIMITS)) as Found;
  const content = seen.files.get('empty')?.snapshot.content;
  expect([content?.length, content?.buffer.byteLength]).toEqual([0, 0]);
  const process = observe(new PathTarget(join(root, 'process'), { ...LIMITS, maxContentBytes: 100_000 }));
  expect(JSON.stringify(texts(process))).toMatch(/Name:.*voluntary_ctxt_switches/);
});

test.each([
  ['plain files', { first: 'text', empty: '', 'with space': 'text' }],
  ['a directory', { first: 'text', 'a/b/c': 'deep', last: 'text' }],
  [
    'a file that is too large',
    { first: 'text', large: 'x'.repeat(LIMITS.maxContentBytes + 1), last: 'text' },
  ],
  ['too many bytes', Object.fromEntries(Array.from('abcdefghijkl', (key) => [key, key.repeat(1_000)]))],
  ['too many files', Object.fromEntries(Array.from({ length: 101 }, (_, number) => [`f${number}`, 'x']))],
])('a revision of %s is the same through promises as with blocking calls, known or not', async (_, files) => {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  volume.publish({ first: 'before' });
  const target = (): PathTarget => new PathTarget(volume.directory, LIMITS);
  const before = observe(target()) as Found;
  volume.publish(files);
  const { sync, ...promises } = nodeFileSystem;
  const all = [
    runSync(target().observe(), sync),
    runSync(target().observe(before), sync),
    await runSliced(target().observe(before), sync),
    await runAsync(target().observe(before), promises),
  ] as Found[];
  const [first, ...others] = all.map((seen) => ({
    snapshot: seen.snapshot.toJSON(),
    texts: texts(seen),
    signatures: [...seen.files].map(([key, { signature, inode, finished }]) => [
      key,
      signature,
      inode,
      finished,
    ]),
    immutable: seen.immutable,
    limited: seen.limited,
  }));
  expect(all[0]?.files.size).toBe(Object.keys(files).length);
  for (const other of others) expect(other).toEqual(first);
});

test('a key with the same bytes in the next revision shares them, so that large ones are compared once', () => {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  const target = new PathTarget(volume.directory, LIMITS);
  volume.publish({ same: 'text', other: 'old' });
  const before = observe(target) as Found;
  volume.publish({ same: 'text', other: 'new' });
  const after = runSync(target.observe(before), nodeFileSystem.sync) as Found;
  const bytes = ({ files }: Found, key: string): unknown => {
    const file = files.get(key);
    return file && FileSnapshot.bytesOf(file.snapshot);
  };
  expect(texts(after)).toEqual({ same: 'text', other: 'new' });
  expect(after.files.get('same')?.snapshot.revision).toBe(after.chain.revision);
  expect(bytes(after, 'same')).toBe(bytes(before, 'same'));
  expect(bytes(after, 'other')).not.toBe(bytes(before, 'other'));
});

describe('a path below directories without search permission', () => {
  /** The file system of a process that may read this directory and what is in it, and nothing else. */
  function allowing(directory: string, refuse: (path: string) => Error): FileSystemCalls {
    const { sync } = nodeFileSystem;
    const lstat = (path: string): ReturnType<typeof sync.lstat> => {
      if (path !== directory && !path.startsWith(`${directory}/`)) throw refuse(path);
      return sync.lstat(path);
    };
    return { ...sync, lstat };
  }
  const refusals = {
    node: (path: string) => errno('ERR_ACCESS_DENIED', path),
    deno: () => Object.assign(new Error('Requires read access'), { name: 'NotCapable' }),
    'the kernel': (path: string) => errno('EACCES', path),
  };

  test.each(Object.entries(refusals))(
    'is found, and the accessible directories are watched (denied by %s)',
    (_, refuse) => {
      const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
      volume.publish({ key: 'text' });
      const calls = allowing(volume.directory, refuse);
      const seen = observe(new PathTarget(volume.directory, LIMITS), calls);
      expect(texts(seen)).toEqual({ key: 'text' });
      expect(watched(seen)).toEqual([volume.directory]);
      const missing = observe(new PathTarget(volume.path('missing'), LIMITS), calls);
      expect(missing.kind).toBe('missing');
      expect(watched(missing)).toEqual([volume.directory]);
    },
  );

  test.each(Object.entries(refusals))(
    'is unreadable when access to it is denied as well (%s)',
    (_, refuse) => {
      const root = temporaryDirectory();
      const calls = allowing(join(root, 'elsewhere'), refuse);
      expect(observe(new PathTarget(join(root, 'file'), LIMITS), calls)).toMatchObject({
        kind: 'unreadable',
        error: { code: 'ERR_TARGET_ACCESS' },
      });
    },
  );
});
