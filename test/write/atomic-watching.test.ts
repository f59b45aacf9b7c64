/** Each write of this library is one change for its watcher, with each source of hints. */
import { join } from 'node:path';

import { AtomicVolume, atomicWriteFile, atomicWriteFileSync } from 'resilient-watcher';
import { describe, expect, test } from 'vitest';

import { openScene, type SceneKind } from '../support/open-scene.js';

const kinds: readonly SceneKind[] = ['scripted', 'poll', 'fs'];

describe.each(kinds)('with hints from %s', (kind) => {
  test('each atomic write of a file is one change', async () => {
    const scene = openScene(kind);
    const path = join(scene.root, 'app.yaml');
    await atomicWriteFile(path, 'one');
    await scene.watch(path);
    await scene.reports('one');
    await atomicWriteFile(path, 'two');
    await scene.reports('two');
    atomicWriteFileSync(path, 'three');
    await scene.reports('three');
    await atomicWriteFile(path, 'three', { ifChanged: true });
    await atomicWriteFile(`${path}.neighbour`, 'x');
    await scene.quiet();
    expect(scene.errors).toEqual([]);
  });

  test('each revision of a volume is one change of every key that differs', async () => {
    const scene = openScene(kind);
    const volume = new AtomicVolume(join(scene.root, 'volume'), { createDirectory: true });
    await volume.write({ 'app.yaml': 'one' });
    await scene.watch(join(volume.directory, 'app.yaml'));
    await scene.reports('one');
    await volume.write({ 'app.yaml': 'two', 'other.yaml': '' });
    await scene.reports('two');
    await volume.write({ 'app.yaml': 'two', 'other.yaml': 'equal for app.yaml' });
    await scene.quiet();
    await volume.write({ 'app.yaml': 'two', 'other.yaml': 'equal for app.yaml' });
    await scene.quiet();
    await volume.write({ 'app.yaml': 'three' });
    await scene.reports('three');
    expect(scene.errors).toEqual([]);
  });
});
