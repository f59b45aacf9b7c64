/** Changes that no hint, or no timestamp, tells of: the next look, or a resync, finds them. */
import { mkdirSync, rmSync, utimesSync, writeFileSync, type BigIntStats } from 'node:fs';

import type { FileSystem } from 'resilient-watcher';
import { expect, test } from 'vitest';

import { errno } from '../support/errno.js';
import { fsWith, type Called } from '../support/intercepted-fs.js';
import { ScriptedScene } from '../support/scripted-scene.js';

/** A file system on which directories change in this tick only. */
function fileSystemAt(tick: () => bigint): FileSystem {
  const stopped = (stat: BigIntStats | undefined): BigIntStats | undefined =>
    stat?.isDirectory() ? Object.assign(stat, { mtimeNs: tick(), ctimeNs: tick(), size: 4_096n }) : stat;
  return fsWith({ lstat: ({ make }) => stopped(make() as BigIntStats | undefined) });
}

test.each([
  { kind: 'directory', below: '', files: 2, recursive: false },
  { kind: 'large directory', below: '', files: 520, recursive: false },
  { kind: 'tree', below: '', files: 2, recursive: true },
  { kind: 'directory of a tree', below: 'sub/', files: 2, recursive: true },
])(
  'what comes to a $kind right after it was listed is found by a resync',
  async ({ below, files, recursive }) => {
    const scene = new ScriptedScene();
    mkdirSync(scene.at('root/sub'), { recursive: true });
    const at = (name: string): string => scene.at(`root/${below}${name}`);
    for (let file = 0; file < files; file += 1) writeFileSync(at(`f${file}`), '');
    let tick = BigInt(scene.clock.now()) * 1_000_000n;
    await scene.watch(scene.at('root'), { fs: fileSystemAt(() => tick), recursive, resync: true });
    await scene.pass(10_000);
    tick += 10_000_000_000n;
    rmSync(at('f0'));
    await scene.hint();
    writeFileSync(at('lost'), 'new');
    await scene.pass(10_000);
    const keys = [...(scene.watcher.current?.files.keys() ?? [])];
    expect(keys).toContain(`${below}lost`);
    expect(keys).not.toContain(`${below}f0`);
  },
);

test('one resync finds what came to a directory and to one below another that is as it was', async () => {
  const scene = new ScriptedScene();
  mkdirSync(scene.at('root/a/b'), { recursive: true });
  await scene.watch(scene.at('root'), { recursive: true, resync: true });
  for (const name of ['root/new', 'root/a/b/new']) writeFileSync(scene.at(name), 'new');
  await scene.clock.advance(1_500);
  await scene.watcher.idle();
  await scene.pass(1_400);
  expect([...(scene.watcher.current?.files.keys() ?? [])].sort()).toEqual(['a/b/new', 'new']);
});

const SKEWS = [
  ['an hour behind', -3_600_000],
  ['3 s behind', -3_000],
  ['the same as ours', 0],
  ['3 s ahead', 3_000],
  ['an hour ahead', 3_600_000],
] as const;

test.each(
  SKEWS.flatMap(([skew, skewMs]) =>
    ['file', 'group', 'directory', 'tree'].map((kind) => ({ kind, skew, skewMs })),
  ),
)(
  'a $kind that is written again within one tick of a clock that is $skew is read again by a resync',
  async ({ kind, skewMs }) => {
    const scene = new ScriptedScene();
    const [root, file] = [scene.at('root'), scene.at('root/file')];
    mkdirSync(root);
    writeFileSync(file, 'one');
    const now = BigInt(scene.clock.now() + skewMs) * 1_000_000n;
    const stopped = ({ make }: Called): unknown => {
      const stat = make() as BigIntStats | undefined;
      return stat && Object.assign(stat, { mtimeNs: now, ctimeNs: now, atimeNs: now });
    };
    const fs = fsWith({
      lstat: (call) => (String(call.args[0]).startsWith(root) ? stopped(call) : call.make()),
      fstat: stopped,
    });
    const path = kind === 'file' ? file : kind === 'group' ? [file] : root;
    await scene.watch(path, { fs, recursive: kind === 'tree', resync: true });
    await scene.pass(100);
    writeFileSync(file, 'two');
    await scene.pass(10_000);
    const [state] = scene.watcher.current?.files.values() ?? [];
    expect(String(state?.content)).toBe('two');
  },
);

test.each([
  ['a part of a tree that could not be read', 'readdir', 'd', ['d/file', 'file']],
  ['an entry of a tree that could not be looked up', 'lstat', 'late', ['file', 'late']],
])('%s at first is found by a resync', async (_, call, faulty, files) => {
  const scene = new ScriptedScene();
  mkdirSync(scene.at('d'));
  for (const name of files) writeFileSync(scene.at(name), 'text');
  let isFaulty = true;
  const fs = fsWith({
    each: ({ name, args: [path] }) => {
      if (isFaulty && name === call && path === scene.at(faulty)) throw errno('EIO', scene.at(faulty));
    },
  });
  await scene.watch(scene.root, { recursive: true, fs, resyncIntervalMs: 5_000 });
  // Longer than a directory is listed again only because it has changed.
  await scene.pass(11_000);
  isFaulty = false;
  await scene.pass(6_000);
  expect(scene.reported.at(-1)).toBe(files.map((name) => `${name}=text`).join(' '));
});

test.each(['a file', 'a file of a directory', 'a file of a tree'])(
  '%s that is overwritten with as many bytes, and gets its old time back, has changed',
  async (kind) => {
    const scene = new ScriptedScene();
    const path = scene.at('d/f');
    mkdirSync(scene.at('d'));
    writeFileSync(path, 'one');
    utimesSync(path, 1_000, 1_000);
    await scene.watch(kind === 'a file' ? path : scene.at('d'), { recursive: kind === 'a file of a tree' });
    const shown = (text: string): string => (kind === 'a file' ? text : `f=${text}`);
    await scene.reports(shown('one'));
    // From now on, a file that looks the same is not read again.
    await scene.pass(5_000);
    await scene.hint();
    writeFileSync(path, 'two');
    utimesSync(path, 1_000, 1_000);
    await scene.hint();
    await scene.comesTo(shown('two'));
  },
);
