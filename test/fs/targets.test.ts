/** What is found at a path, and what is watched for it. */
import { existsSync, mkdirSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { readVolume, ResilientWatcher, type FileSystem, type Snapshot } from 'resilient-watcher';
import { KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import { errno } from '../support/errno.js';
import { fsWith } from '../support/intercepted-fs.js';
import { ScriptedScene } from '../support/scripted-scene.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

function texts(snapshot: Snapshot | undefined): unknown {
  if (!snapshot || snapshot.kind === 'missing') return undefined;
  return Object.fromEntries([...snapshot.files].map(([key, { content }]) => [key, String(content)]).sort());
}

describe('a tree', () => {
  test('omits what could never be read, without being unreadable', async () => {
    const scene = new ScriptedScene();
    mkdirSync(scene.at('root/lost+found'), { recursive: true });
    writeFileSync(scene.at('root/file'), 'text');
    const fs = fsWith({
      each: ({ name, args: [path] }) => {
        if (name === 'readdir' && String(path).endsWith('lost+found')) throw errno('EACCES', String(path));
      },
    });
    await scene.watch(scene.at('root'), { recursive: true, fs });
    await scene.settle();
    expect(texts(scene.watcher.current)).toEqual({ file: 'text' });
    expect(scene.errors).toEqual([]);
  });

  test.each([
    ['is a volume that cannot be read', 'readdir', '/..20'],
    ['may be listed but not entered', 'lstat', '/root/'],
  ])('whose root %s is unreadable, also from the start', async (_, call, part) => {
    const scene = new ScriptedScene();
    if (call === 'readdir') new KubeletVolume(scene.at('root')).publish({ key: 'text' });
    else {
      mkdirSync(scene.at('root'));
      writeFileSync(scene.at('root/key'), 'text');
    }
    let isDenied = true;
    const fs = fsWith({
      each: ({ name, args: [path] }) => {
        if (isDenied && name === call && String(path).includes(part))
          throw Object.assign(errno('EACCES', String(path)), { syscall: call });
      },
    });
    await scene.watch(scene.at('root'), { recursive: true, fs });
    await scene.settle();
    expect(scene.watcher.status().target).toBe('unreadable');
    expect(scene.watcher.current).toBeUndefined();
    isDenied = false;
    await scene.hint();
    await scene.comesTo('key=text');
    expect(scene.watcher.status().target).toBe('tree');
  });

  test('does not tell a file that outgrows the limit and is renamed while it is read under its old name', async () => {
    const scene = new ScriptedScene();
    mkdirSync(scene.at('root'));
    const [old, name] = [scene.at('root/old'), scene.at('root/new')];
    writeFileSync(old, '');
    const fs = fsWith({
      each: ({ name: call }) => {
        if (call !== 'read' || !existsSync(old)) return;
        writeFileSync(old, 'x'.repeat(LIMITS.maxContentBytes + 1));
        renameSync(old, name);
      },
    });
    await scene.watch(scene.at('root'), { ...LIMITS, settleMs: 0, recursive: true, fs });
    await scene.settle();
    expect(scene.changes.flatMap(({ added }) => added)).toEqual(['new']);
  });

  test.each(['..2026_01_01_00_00_00.1', '..hand-made'])(
    'never shows the inside of a volume, even while its ..data is missing (%s)',
    async (revision) => {
      const scene = new ScriptedScene();
      const volume = scene.at('root/volume');
      mkdirSync(join(volume, revision), { recursive: true });
      writeFileSync(join(volume, revision, 'key'), 'text');
      symlinkSync(revision, join(volume, '..data'));
      symlinkSync('..data/key', join(volume, 'key'));
      await scene.watch(scene.at('root'), { recursive: true });
      expect(texts(scene.watcher.current)).toEqual({ 'volume/key': 'text' });
      unlinkSync(join(volume, '..data'));
      await scene.settle();
      await scene.watcher.check();
      expect(texts(scene.watcher.current)).toEqual({});
      symlinkSync(revision, join(volume, '..data'));
      await scene.settle();
      expect(texts(scene.watcher.current)).toEqual({ 'volume/key': 'text' });
    },
  );

  test('does not follow a key of a volume whose ..data leads elsewhere', async () => {
    const root = temporaryDirectory();
    const victim = temporaryDirectory();
    mkdirSync(join(victim, 'directory'));
    writeFileSync(join(victim, 'directory', 'secret'), 'secret');
    mkdirSync(join(root, 'volume'));
    symlinkSync(victim, join(root, 'volume', '..data'));
    symlinkSync('..data/directory', join(root, 'volume', 'directory'));
    expect(texts(await new ResilientWatcher(root, { recursive: true }).snapshot())).toEqual({});
  });
});

/** The directories that are watched for a path, and what is there. */
async function watched(
  path: string | ((scene: ScriptedScene) => string),
  options: { readonly fs?: FileSystem; readonly recursive?: boolean } = {},
) {
  const scene = new ScriptedScene();
  await scene.watch(typeof path === 'string' ? path : path(scene), options);
  const directories = (): readonly string[] => scene.watcher.status().watchedDirectories;
  return { scene, directories };
}

test('the directories of the files that the links of a tree lead to are watched', async () => {
  const root = temporaryDirectory();
  const elsewhere = temporaryDirectory();
  writeFileSync(join(elsewhere, 'file'), 'text');
  symlinkSync(join(elsewhere, 'file'), join(root, 'link'));
  const { scene, directories } = await watched(root, { recursive: true });
  expect(directories()).toContain(elsewhere);
  unlinkSync(join(root, 'link'));
  await scene.hint();
  expect(directories()).not.toContain(elsewhere);
});

test('revisions of kubelet are not watched, which would take another watch with every swap', async () => {
  const { directories } = await watched(({ volume }) => {
    volume.publish({ 'conf.d/key': 'text' });
    return volume.directory;
  });
  expect(directories().filter((path) => path.includes('..'))).toEqual([]);
});

test('an empty file takes no memory for content, and a file that does not report its size is read whole', async () => {
  const root = temporaryDirectory();
  writeFileSync(join(root, 'empty'), '');
  symlinkSync('/proc/self/status', join(root, 'process'));
  const { files } = await readVolume(root);
  const content = files.get('empty')?.content;
  expect([content?.length, content?.buffer.byteLength]).toEqual([0, 0]);
  expect(String(files.get('process')?.content)).toMatch(/Name:[^]*voluntary_ctxt_switches/);
});

const LIMITS = { maxContentBytes: 1_000, maxTotalBytes: 10_000, maxFiles: 100 };

test.each([
  ['plain files', { first: 'text', empty: '', 'with space': 'text' }],
  ['a directory', { first: 'text', 'a/b/c': 'deep', last: 'text' }],
  [
    'a file that is too large',
    { first: 'text', large: 'x'.repeat(LIMITS.maxContentBytes + 1), last: 'text' },
  ],
  ['too many bytes', Object.fromEntries(Array.from('abcdefghijkl', (key) => [key, key.repeat(1_000)]))],
  ['too many files', Object.fromEntries(Array.from({ length: 101 }, (_, number) => [`f${number}`, 'x']))],
])('a revision of %s is the same where calls may hang as elsewhere, known or not', async (_, files) => {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  volume.publish({ first: 'before' });
  const fs = fsWith({ each: ({ make }) => make() }, 'remote');
  const scenes = [new ScriptedScene(), new ScriptedScene()];
  for (const [index, scene] of scenes.entries()) {
    await scene.watch(volume.directory, { ...LIMITS, ...(index === 1 && { fs }) });
  }
  volume.publish(files);
  for (const scene of scenes) await scene.hint();
  const snapshots = [
    await readVolume(volume.directory, LIMITS),
    await readVolume(volume.directory, { ...LIMITS, fs }),
    ...scenes.map(({ watcher }) => watcher.current),
  ];
  const [first, ...others] = snapshots.map((snapshot) => [
    JSON.stringify(snapshot),
    texts(snapshot),
    snapshot?.digest,
  ]);
  expect(snapshots[0]?.files.size).toBe(Object.keys(files).length);
  for (const other of others) expect(other).toEqual(first);
});

describe('a path below directories without search permission', () => {
  /** The file system of a process that may read this directory and what is in it, and nothing else. */
  function allowing(directory: string, refuse: (path: string) => Error): FileSystem {
    return fsWith({
      each: ({ name, args: [path] }) => {
        if (name === 'lstat' && !`${String(path)}/`.startsWith(`${directory}/`)) throw refuse(String(path));
      },
    });
  }

  test.each<[string, (path: string) => Error]>([
    ['node', (path) => errno('ERR_ACCESS_DENIED', path)],
    ['deno', () => Object.assign(new Error('Requires read access'), { name: 'NotCapable' })],
    ['the kernel', (path) => errno('EACCES', path)],
  ])('is found, and the accessible directories are watched (denied by %s)', async (_, refuse) => {
    const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
    volume.publish({ key: 'text' });
    const fs = allowing(volume.directory, refuse);
    const { scene, directories } = await watched(volume.directory, { fs });
    expect(texts(scene.watcher.current)).toEqual({ key: 'text' });
    expect(directories()).toEqual([volume.directory]);
    const missing = await watched(volume.path('missing'), { fs });
    expect(missing.scene.watcher.current?.kind).toBe('missing');
    expect(missing.directories()).toEqual([volume.directory]);
    const denied = await watched(join(volume.directory, '../file'), { fs });
    expect(denied.scene.errors).toMatchObject([{ code: 'ERR_TARGET_ACCESS' }]);
  });
});
