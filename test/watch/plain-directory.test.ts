/** A plain directory: each of its files is whole. */
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import { ScriptedScene } from '../support/scripted-scene.js';

describe('a plain directory', () => {
  test('is the files in it, each whole', async () => {
    const scene = new ScriptedScene();
    const conf = join(scene.root, 'conf.d');
    mkdirSync(conf);
    writeFileSync(join(conf, 'a'), 'a1');
    await scene.watch(conf);
    writeFileSync(join(conf, '.next'), 'b1');
    renameSync(join(conf, '.next'), join(conf, 'b'));
    await scene.settle();
    writeFileSync(join(conf, 'a'), 'a2');
    await scene.hint();
    expect(scene.takeChanges().map(({ files }) => files)).toEqual([{ a: 'a1' }, { a: 'a1', b: 'b1' }]);
    await scene.settle();
    rmSync(join(conf, 'b'));
    await scene.settle();
    expect(scene.takeChanges()).toEqual([
      { kind: 'directory', files: { a: 'a2', b: 'b1' }, keys: '+ ~a -' },
      { kind: 'directory', files: { a: 'a2' }, keys: '+ ~ -b' },
    ]);
  });

  test('follows links among its entries, and watches where they lead', async () => {
    const scene = new ScriptedScene();
    const conf = join(scene.root, 'conf.d');
    const volume = new KubeletVolume(join(scene.root, 'volume'));
    volume.publish({ key: 'v1' });
    mkdirSync(conf);
    symlinkSync('../volume/key', join(conf, 'linked'));
    symlinkSync('../elsewhere/app', join(conf, 'dangling'));
    await scene.watch(conf);
    expect(scene.backend.directories.map(({ path }) => path)).toContain(volume.directory);
    volume.publish({ key: 'v2' });
    await scene.hint();
    mkdirSync(join(scene.root, 'elsewhere'));
    writeFileSync(join(scene.root, 'elsewhere', 'app'), 'here');
    await scene.settle();
    expect(scene.takeChanges().map(({ files }) => files)).toEqual([
      { linked: 'v1' },
      { linked: 'v2' },
      { dangling: 'here', linked: 'v2' },
    ]);
  });

  test('behind a link that leads nowhere at the start is reported with its files', async () => {
    const scene = new ScriptedScene();
    symlinkSync('conf.d', scene.at('link'));
    const started = scene.watch(scene.at('link'), { missingGraceMs: 600_000 });
    await scene.until(() => scene.watcher.status().checks > 0);
    mkdirSync(scene.at('next'));
    for (const name of ['a', 'b']) writeFileSync(scene.at(`next/${name}`), name);
    renameSync(scene.at('next'), scene.at('conf.d'));
    await scene.hint();
    await started;
    expect(scene.takeChanges().map(({ files }) => files)).toEqual([{ a: 'a', b: 'b' }]);
  });
});
