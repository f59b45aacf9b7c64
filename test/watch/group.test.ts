/** A group: files in several places, one snapshot. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ResilientWatcher, waitFor } from 'resilient-watcher';
import { KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import { ScriptedScene } from '../support/scripted-scene.js';

describe('a group', () => {
  function twoVolumes(scene: ScriptedScene): { tls: KubeletVolume; app: KubeletVolume; paths: string[] } {
    const tls = new KubeletVolume(join(scene.root, 'tls'));
    const app = new KubeletVolume(join(scene.root, 'app'));
    tls.publish({ crt: 'c1', key: 'k1' });
    app.publish({ 'app.yaml': 'a1' });
    return { tls, app, paths: [tls.path('crt'), tls.path('key'), app.path('app.yaml')] };
  }

  test('of two volumes that change together within groupSettleMs is one change', async () => {
    const scene = new ScriptedScene();
    const { tls, app, paths } = twoVolumes(scene);
    await scene.watch(paths, { groupSettleMs: 300 });
    scene.takeChanges();
    tls.publish({ crt: 'c2', key: 'k2' });
    await scene.hint();
    await scene.clock.advance(299);
    await scene.watcher.idle();
    expect(scene.takeChanges()).toEqual([]);
    app.publish({ 'app.yaml': 'a2' });
    await scene.hint();
    expect(scene.takeChanges().map(({ files }) => Object.values(files))).toEqual([['c2', 'k2', 'a2']]);
    tls.publish({ crt: 'c3', key: 'k3' });
    await scene.hint();
    await scene.clock.advance(300);
    await scene.watcher.idle();
    expect(scene.takeChanges()).toEqual([
      {
        kind: 'group',
        files: Object.fromEntries(paths.map((path, index) => [path, ['c3', 'k3', 'a2'][index]])),
        keys: `+ ~${paths.slice(0, 2).join()} -`,
      },
    ]);
  });

  // On macOS, what is only above a member is not listened to.
  test('listens to the directory of a member that is above another one, too', async () => {
    const scene = new ScriptedScene();
    mkdirSync(scene.at('d'));
    for (const name of ['d/f', 'f']) writeFileSync(scene.at(name), '');
    await scene.watch([scene.at('d/f'), scene.at('f')]);
    const directory = scene.backend.directories.find(({ path }) => path === scene.root);
    expect(directory).toMatchObject({ entries: ['d', 'f'], isAncestor: false });
  });

  test('reports members that are missing, created and removed; without any it is missing', async () => {
    const scene = new ScriptedScene();
    const [one, two] = [join(scene.root, 'one'), join(scene.root, 'two')];
    await scene.watch([one, two]);
    expect(scene.watcher.current?.kind).toBe('missing');
    writeFileSync(one, '1');
    await scene.settle();
    writeFileSync(two, '2');
    await scene.settle();
    rmSync(one);
    await scene.settle();
    rmSync(two);
    await scene.settle();
    expect(
      scene.takeChanges().map(({ kind, keys }) => `${kind} ${keys.replaceAll(`${scene.root}/`, '')}`),
    ).toEqual(['group +one ~ -', 'group +two ~ -', 'group + ~ -one', 'missing + ~ -two']);
  });

  test.each<[string, (path: string) => void]>([
    ['a directory', (path) => mkdirSync(path)],
    ['an empty directory behind a link', (path) => symlinkSync(`${path}-dir`, path)],
    ['a volume', (path) => new KubeletVolume(path).publish({ key: 'value' })],
  ])('with %s among its members does not start, and says what to do instead', async (_, arrange) => {
    const scene = new ScriptedScene();
    const path = scene.at('member');
    mkdirSync(`${path}-dir`);
    writeFileSync(scene.at('file'), '1');
    arrange(path);
    const watcher = scene.create([scene.at('file'), path]);
    const changes: unknown[] = [];
    watcher.on('change', (change) => changes.push(change));
    const refusal = {
      name: 'TargetError',
      code: 'ERR_TARGET_DIRECTORY',
      path,
      message: `Cannot watch "${path}" as part of a group: it is a directory; give it a watcher of its own, with "recursive" if needed`,
    };
    await expect(watcher.start()).rejects.toMatchObject(refusal);
    await expect(watcher.snapshot()).rejects.toMatchObject(refusal);
    await expect(waitFor([scene.at('file'), path])).rejects.toMatchObject(refusal);
    expect([watcher.state, changes, scene.backend.subscribed]).toEqual(['idle', [], 0]);

    rmSync(path, { recursive: true });
    writeFileSync(path, '2');
    await watcher.start();
    expect(changes).toHaveLength(1);
    await watcher.close();
  });

  test('of one directory in an array does not start', async () => {
    const scene = new ScriptedScene();
    await expect(scene.create([scene.root]).start()).rejects.toThrow(/as part of a group: it is a directory/);
  });

  test('goes on with the others when a member becomes a directory, which is unreadable by name', async () => {
    const scene = new ScriptedScene();
    const [one, two] = [join(scene.root, 'one'), join(scene.root, 'two')];
    writeFileSync(two, '2');
    await scene.watch([one, two]);
    mkdirSync(one);
    await scene.settle();
    expect(scene.errors).toEqual([expect.objectContaining({ code: 'ERR_TARGET_DIRECTORY', path: one })]);
    scene.takeChanges();
    writeFileSync(two, '2!');
    await scene.settle();
    expect(Object.values(scene.takeChanges().at(-1)?.files ?? {})).toEqual(['2!']);
    rmSync(one, { recursive: true });
    writeFileSync(one, '1');
    await scene.settle();
    expect(Object.values(scene.takeChanges().at(-1)?.files ?? {})).toEqual(['1', '2!']);
    expect(scene.errors).toHaveLength(1);
  });

  test('is unreadable, and not missing, when all that is there are directories', async () => {
    const scene = new ScriptedScene();
    const one = join(scene.root, 'one');
    await scene.watch([one, join(scene.root, 'two')]);
    mkdirSync(one);
    await scene.settle();
    expect(scene.watcher.status().target).toBe('unreadable');
  });

  test('reports the others when a directory is added', async () => {
    const scene = new ScriptedScene();
    const [one, two] = [join(scene.root, 'one'), join(scene.root, 'two')];
    writeFileSync(one, '1');
    mkdirSync(two);
    await scene.watch([one]);
    await scene.watcher.add(two);
    await scene.settle();
    expect(scene.errors).toEqual([expect.objectContaining({ code: 'ERR_TARGET_DIRECTORY', path: two })]);
    scene.takeChanges();
    writeFileSync(one, '1!');
    await scene.settle();
    expect(Object.values(scene.takeChanges().at(-1)?.files ?? {})).toEqual(['1!']);
  });

  test.each<[unknown, RegExp]>([
    [[], /at least one file/],
    [['a', 'b', 'a'], /path names "[^"]+a" twice/],
    [['a', ''], /path\[1\] must be a non-empty string/],
    [['a', 7], /path\[1\] must be a non-empty string/],
  ])('%j is refused', (paths, message) => {
    expect(() => new ResilientWatcher(paths as string[])).toThrow(message);
  });
});

test('a pipe in a group is not called a directory', async () => {
  const scene = new ScriptedScene();
  writeFileSync(scene.at('file'), 'one');
  execFileSync('mkfifo', [scene.at('pipe')]);
  await scene.watch([scene.at('file'), scene.at('pipe')]);
  await scene.fails('ERR_TARGET_PATH');
  expect(scene.errors[0]?.message).toMatch(
    /pipe": it is a device, a pipe or a socket; every path of a group/,
  );
});
