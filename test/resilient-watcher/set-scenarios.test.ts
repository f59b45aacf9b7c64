/** What happens to volumes, directories and groups, whoever gives the hints; see scenarios.test.ts. */
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { describe, test } from 'vitest';

import { openScene, type Scene, type SceneKind } from '../support/watch-scene.js';

const scenarios: Record<string, (scene: Scene) => Promise<void>> = {
  async 'a volume that is swapped in both shapes, deleted and made again'(scene) {
    const path = join(scene.root, 'tls');
    const publish = (swap: 'rename' | 'remove', version: string): void =>
      void new KubeletVolume(path, { swap }).publish({ crt: version, key: version });
    publish('rename', '1');
    await scene.watch(path);
    await scene.reports('crt=1 key=1');
    publish('rename', '2');
    await scene.reports('crt=2 key=2');
    publish('remove', '3');
    await scene.reports('crt=3 key=3');
    rmSync(path, { recursive: true });
    publish('rename', '4');
    await scene.reports('crt=4 key=4');
    publish('remove', '5');
    await scene.reports('crt=5 key=5');
    publish('rename', '5');
    await scene.quiet();
  },

  async 'a volume that is missing with its parents, comes, and has an ancestor replaced'(scene) {
    const path = join(scene.root, 'run', 'pod', 'tls');
    await scene.watch(path);
    new KubeletVolume(path).publish({ key: '1' });
    await scene.reports('key=1');
    new KubeletVolume(join(scene.root, 'other', 'pod', 'tls')).publish({ key: '2' });
    renameSync(join(scene.root, 'run'), join(scene.root, 'gone'));
    renameSync(join(scene.root, 'other'), join(scene.root, 'run'));
    await scene.reports('key=2');
    new KubeletVolume(path).publish({ key: '3' });
    await scene.reports('key=3');
  },

  async 'a volume behind a link that is retargeted'(scene) {
    for (const name of ['a', 'b']) new KubeletVolume(join(scene.root, name)).publish({ key: name });
    symlinkSync('a', join(scene.root, 'tls'));
    await scene.watch(join(scene.root, 'tls'));
    await scene.reports('key=a');
    symlinkSync('b', join(scene.root, 'next'));
    renameSync(join(scene.root, 'next'), join(scene.root, 'tls'));
    await scene.reports('key=b');
    new KubeletVolume(join(scene.root, 'b')).publish({ key: 'c' });
    await scene.reports('key=c');
  },

  async 'a plain directory whose files are replaced, written in place, and linked from a volume'(scene) {
    const path = join(scene.root, 'conf.d');
    mkdirSync(path);
    writeFileSync(join(path, 'a'), '1');
    await scene.watch(path, { grace: 'shorter than gaps' });
    await scene.reports('a=1');
    writeFileSync(join(scene.root, 'next'), '2');
    renameSync(join(scene.root, 'next'), join(path, 'a'));
    await scene.reports('a=2');
    writeFileSync(join(path, 'a'), 'in place');
    await scene.reports('a=in place');
    const volume = new KubeletVolume(join(scene.root, 'volume'));
    volume.publish({ key: '1' });
    symlinkSync('../volume/key', join(path, 'b'));
    await scene.reports('a=in place b=1');
    volume.publish({ key: '2' });
    await scene.reports('a=in place b=2');
    rmSync(join(path, 'a'));
    await scene.reports('b=2');
  },

  async 'a group of a volume and a file elsewhere'(scene) {
    const volume = new KubeletVolume(join(scene.root, 'tls'));
    const file = join(scene.root, 'app.yaml');
    volume.publish({ crt: '1', key: '1' });
    await scene.watch([volume.path('crt'), volume.path('key'), file]);
    await scene.reports('crt=1 key=1');
    writeFileSync(join(scene.root, 'next'), 'app');
    renameSync(join(scene.root, 'next'), file);
    await scene.reports('crt=1 key=1 app.yaml=app');
    volume.publish({ crt: '2', key: '2' });
    await scene.reports('crt=2 key=2 app.yaml=app');
    volume.remove();
    volume.publish({ crt: '3', key: '3' });
    await scene.reports('crt=3 key=3 app.yaml=app');
  },
};

const kinds: readonly SceneKind[] =
  process.platform === 'linux' ? ['scripted', 'poll', 'fs', 'parcel'] : ['scripted', 'poll'];

describe.each(kinds)('hints from %s', (kind) => {
  test.each(Object.entries(scenarios))('%s', (_, scenario) => scenario(openScene(kind)));
});
