/** Two changes of a directory within one tick of the clock of its file system, of which a hint tells only the first. */
import type { BigIntStats } from 'node:fs';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';

import type { FileSystem } from 'resilient-watcher';
import { expect, test } from 'vitest';

import { fsWith } from '../support/intercepted-fs.js';
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
