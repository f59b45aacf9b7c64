/** A volume: one snapshot and one change for each revision. */
import { renameSync, rmSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import { fsWith } from '../support/intercepted-fs.js';
import { ScriptedFs } from '../support/scripted-fs.js';
import { ScriptedScene } from '../support/scripted-scene.js';

describe('a volume', () => {
  test.each(['.', '..', './', '/', '../volume'])(
    'whose ..data is retargeted to "%s" is unreadable: the published set stands until there is another one',
    async (target) => {
      const scene = new ScriptedScene();
      const volume = new KubeletVolume(join(scene.root, 'volume'));
      volume.publish({ a: '1' });
      writeFileSync(volume.path('plain'), 'no key');
      await scene.watch(volume.directory);
      scene.takeChanges();
      symlinkSync(target, volume.path('link'));
      renameSync(volume.path('link'), volume.path('..data'));
      await scene.settle();
      expect(scene.takeChanges()).toEqual([]);
      expect(scene.watcher.status()).toMatchObject({ target: 'unreadable' });
      rmSync(volume.path('..data'));
      volume.publish({ a: '2' });
      await scene.settle();
      expect(scene.takeChanges().map(({ files }) => files)).toEqual([{ a: '2' }]);
    },
  );

  test.each([
    ['the mode of a key changes', 'v2'],
    ['a key is overwritten with as many bytes, and gets its old time back,', 'v3'],
  ])('is told without time passing if %s while it is read', async (what, told) => {
    const scene = new ScriptedScene();
    const volume = new KubeletVolume(scene.root);
    volume.publish({ key: 'v1' });
    let isRead = false;
    const fs = fsWith({
      each: ({ name, make }) => {
        const answer = make();
        if (name !== 'read' || !isRead) return answer;
        isRead = false;
        scene.changeMode(volume.path('key'));
        if (what.startsWith('a key')) writeFileSync(volume.path('key'), told);
        utimesSync(volume.path('key'), 1, 1);
        return answer;
      },
    });
    await scene.watch(scene.root, { fs });
    scene.takeChanges();
    volume.publish({ key: 'v2' });
    utimesSync(volume.path('key'), 1, 1);
    isRead = true;
    await scene.hint();
    expect(scene.takeChanges().map(({ files }) => files)).toEqual([{ key: told }]);
  });

  test('of many files is checked in slices, so that the event loop is not blocked', async () => {
    const scene = new ScriptedScene();
    const files = Object.fromEntries(Array.from({ length: 2_000 }, (_, number) => [`f${number}`, 'v1']));
    new KubeletVolume(scene.root).publish(files);
    await scene.watch(scene.root);
    let turns = 0;
    let isChecking = true;
    const turn = (): void => {
      turns += 1;
      if (isChecking) setImmediate(turn);
    };
    setImmediate(turn);
    await scene.watcher.check();
    isChecking = false;
    // Reading each takes one call at least, and 500 calls are one slice.
    expect(turns).toBeGreaterThanOrEqual(4);
  });

  test('is read once per swap, and other events do not lead to checks of its files', async () => {
    const scene = new ScriptedScene();
    const volume = new KubeletVolume(join(scene.root, 'tls'));
    const files = new ScriptedFs();
    const asked = (): string[] =>
      files.calls
        .splice(0)
        .filter(({ args }) => typeof args[0] === 'number' || /\/[ab]$/.test(String(args[0])))
        .map(({ name }) => name);
    volume.publish({ a: 'one', b: 'two' });
    await scene.watch(volume.directory, { fs: files.fs, resyncIntervalMs: 5_000 });
    asked();
    volume.publish({ a: 'ONE', b: 'TWO' });
    scene.backend.hint(join(volume.directory, '..data'));
    await scene.watcher.idle();
    expect(asked().filter((name) => name === 'open')).toHaveLength(2);
    scene.backend.hint(join(volume.directory, 'something'));
    await scene.watcher.idle();
    expect(asked()).toEqual([]);
    // The first resync reads again what was published just before it was read.
    await scene.clock.advance(5_000);
    await scene.watcher.idle();
    asked();
    await scene.clock.advance(5_000);
    await scene.watcher.idle();
    expect(asked()).not.toContain('open');
    await scene.watcher.check();
    expect(asked()).not.toContain('open');
    expect(scene.takeChanges().map((change) => change.files)).toEqual([
      { a: 'one', b: 'two' },
      { a: 'ONE', b: 'TWO' },
    ]);
  });

  test('above a limit has digests or identities, and warns once', async () => {
    const scene = new ScriptedScene();
    const volume = new KubeletVolume(join(scene.root, 'tls'));
    const limits = { maxFiles: 3, maxContentBytes: 100, maxTotalBytes: 150 };
    const small = 'x'.repeat(90);
    volume.publish({ a: small });
    await scene.watch(volume.directory, limits);
    const kept = (): unknown =>
      [...(scene.watcher.current?.files ?? [])].map(([key, { content, digest }]) => [
        key,
        content?.length ?? digest.split(':')[0],
      ]);
    expect(kept()).toEqual([['a', 90]]);
    expect(scene.warnings).toEqual([]);
    volume.publish({ a: small, big: 'y'.repeat(101) });
    await scene.hint();
    expect(kept()).toEqual([
      ['a', 90],
      ['big', 'stat'],
    ]);
    volume.publish({ a: small, b: small });
    await scene.hint();
    expect(kept()).toEqual([
      ['a', 'sha256'],
      ['b', 'sha256'],
    ]);
    expect(scene.changes.at(-1)).toMatchObject({ added: ['b'], changed: [], removed: ['big'] });
    volume.publish({ a: small, b: small.toUpperCase() });
    await scene.hint();
    expect(scene.changes.at(-1)).toMatchObject({ added: [], changed: ['b'], removed: [] });
    volume.publish({ a: '', b: '', c: '', d: '' });
    await scene.hint();
    expect(kept()).toEqual(['a', 'b', 'c', 'd'].map((key) => [key, 'stat']));
    expect(scene.warnings.map((message) => /max\w+/.exec(message)?.[0])).toEqual([
      'maxContentBytes',
      'maxTotalBytes',
      'maxFiles',
    ]);
    volume.publish({ a: small });
    await scene.hint();
    expect(scene.watcher.status().warnings).toEqual([]);
  });
});

test('what somebody writes into a published revision is reported when it is complete', async () => {
  const scene = new ScriptedScene();
  scene.volume.publish({ key: 'published' });
  await scene.watch(scene.volume.directory, { resyncIntervalMs: 5_000 });
  const path = scene.volume.path('..data/key');
  writeFileSync(path, 'half');
  await scene.pass(5_000);
  await scene.pass(20);
  writeFileSync(path, 'half and the rest');
  await scene.pass(1_000);
  expect(scene.reported).toEqual(['key=published', 'key=half and the rest']);
});

test('a volume is reported at once after a link to a key without a link was removed', async () => {
  const scene = new ScriptedScene();
  const { volume } = scene;
  volume.publish({ key: '1', late: '1' });
  unlinkSync(volume.path('late'));
  symlinkSync('volume/late', scene.at('link'));
  await scene.watch(scene.root, { recursive: true });
  await scene.pass(1_000);
  unlinkSync(scene.at('link'));
  await scene.hint(scene.at('link'));
  scene.takeChanges();
  volume.publish({ key: '2' });
  await scene.hint(volume.path('..data'));
  expect(scene.reported.at(-1)).toContain('volume/key=2');
});

test('a key in a directory may begin with two dots; only at the top, such names belong to the volume', async () => {
  const scene = new ScriptedScene();
  scene.volume.publish({ 'certs/..crt': 'text' });
  await scene.watch(scene.volume.directory);
  await scene.reports('certs/..crt=text');
});
