/** What happens to volumes, directories, groups and trees, and what must be reported. */
import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { expect } from 'vitest';

import type { Scenarios } from './file-scenarios.js';
import { placeFile } from './place-file.js';
import { rewriteAndAppend } from './write-in-pieces.js';

export const setScenarios: Scenarios = {
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

  async 'a volume whose keys come, go and are nested, with links made before the swap and old revisions kept'(
    scene,
  ) {
    const volume = new KubeletVolume(join(scene.root, 'v'), { links: 'before', keepOldRevisions: true });
    volume.publish({ a: '1', 'conf.d/b': '1' });
    await scene.watch(volume.directory);
    await scene.reports('a=1 conf.d/b=1');
    volume.publish({ 'conf.d/b': '2', 'conf.d/deep/c': '2' });
    await scene.reports('conf.d/b=2 conf.d/deep/c=2');
    volume.publish({ 'conf.d': '3' });
    await scene.reports('conf.d=3');
    volume.publish({});
    await scene.reports('');
    volume.publish({ a: '4' });
    await scene.reports('a=4');
  },

  async 'a new revision of a volume with the same bytes is an event of its own'(scene) {
    const volume = new KubeletVolume(join(scene.root, 'v'));
    volume.publish({ a: '1' });
    await scene.watch(volume.directory);
    await scene.reports('a=1');
    volume.publish({ a: '2' });
    const { revision } = volume.publish({ a: '1' });
    await scene.quiet();
    expect(scene.revisions).toEqual([revision]);
    expect(scene.watcher.current?.revision).toBe(revision);
  },

  async 'in the gap of a remove-and-link swap within the grace a volume shows nothing but the new set'(
    scene,
  ) {
    const volume = new KubeletVolume(join(scene.root, 'v'), { swap: 'remove' });
    volume.publish({ a: '1', gone: '1' });
    await scene.watch(volume.directory, { grace: 'longer than gaps' });
    await scene.reports('a=1 gone=1');
    for (const step of volume.steps({ a: '2', b: '2' })) {
      if (step.name === 'unlink' && step.path === volume.path('..data')) await scene.unreported();
    }
    await scene.reports('a=2 b=2');
  },

  async 'in the same gap a group shows nothing but the new set'(scene) {
    const volume = new KubeletVolume(join(scene.root, 'v'), { swap: 'remove' });
    volume.publish({ a: '1', b: '1' });
    await scene.watch([volume.path('a'), volume.path('b')], { grace: 'longer than gaps' });
    await scene.reports('a=1 b=1');
    for (const step of volume.steps({ a: '2', b: '2' })) {
      if (step.name === 'unlink' && step.path === volume.path('..data')) await scene.unreported();
    }
    await scene.reports('a=2 b=2');
  },

  async 'in a gap beyond the grace a volume is missing'(scene) {
    const volume = new KubeletVolume(join(scene.root, 'v'), { swap: 'remove' });
    volume.publish({ a: '1', b: '1' });
    await scene.watch(volume.directory, { grace: 'shorter than gaps' });
    await scene.reports('a=1 b=1');
    for (const step of volume.steps({ a: '2', b: '2' })) {
      if (step.name === 'unlink' && step.path === volume.path('..data')) await scene.reportsMissing();
    }
    await scene.reports('a=2 b=2');
  },

  async 'in a gap beyond the grace a group is missing, but for its members elsewhere'(scene) {
    const volume = new KubeletVolume(join(scene.root, 'v'), { swap: 'remove' });
    const file = join(scene.root, 'c');
    writeFileSync(file, '1');
    volume.publish({ a: '1', b: '1' });
    await scene.watch([volume.path('a'), volume.path('b'), file], { grace: 'shorter than gaps' });
    await scene.reports('a=1 b=1 c=1');
    for (const step of volume.steps({ a: '2', b: '2' })) {
      if (step.name === 'unlink' && step.path === volume.path('..data')) await scene.reports('c=1');
    }
    await scene.reports('a=2 b=2 c=1');
  },

  async 'a link to a volume, a directory and a group that is away for a moment, and then leads elsewhere'(
    scene,
  ) {
    for (const name of ['one', 'two'])
      new KubeletVolume(join(scene.root, name)).publish({ a: name, b: name });
    const link = join(scene.root, 'link');
    symlinkSync('one', link);
    await scene.watch([join(link, 'a'), join(link, 'b')]);
    await scene.reports('a=one b=one');
    for (const name of ['two', 'one']) {
      unlinkSync(link);
      await scene.unreported();
      symlinkSync(name, link);
      await scene.reports(`a=${name} b=${name}`);
    }
  },

  async 'a volume, a plain directory, a file, and a volume again in the same place'(scene) {
    const path = join(scene.root, 'etc', 'tls');
    new KubeletVolume(path).publish({ a: 'volume' });
    await scene.watch(path, { grace: 'shorter than gaps' });
    await scene.reports('a=volume');
    for (const round of ['1', '2']) {
      rmSync(path, { recursive: true });
      placeFile(join(path, 'a'), `plain ${round}`, scene.root);
      await scene.reports(`a=plain ${round}`);
      expect(scene.watcher.current?.kind).toBe('directory');
      placeFile(join(path, 'a'), `plain! ${round}`, scene.root);
      await scene.reports(`a=plain! ${round}`);
      rmSync(path, { recursive: true });
      placeFile(path, `file ${round}`, scene.root);
      await scene.reports(`file ${round}`);
      expect(scene.watcher.current?.kind).toBe('file');
      rmSync(path);
      placeFile(join(path, 'b'), `plain ${round}`, scene.root);
      await scene.reports(`b=plain ${round}`);
      rmSync(path, { recursive: true });
      new KubeletVolume(path).publish({ a: round });
      await scene.reports(`a=${round}`);
      expect(scene.watcher.current?.kind).toBe('volume');
      new KubeletVolume(path).publish({ a: `${round}!` });
      await scene.reports(`a=${round}!`);
    }
  },

  async 'a plain directory that becomes a volume in place, and a plain one again'(scene) {
    const path = join(scene.root, 'v');
    placeFile(join(path, 'plain'), '1', scene.root);
    await scene.watch(path, { grace: 'shorter than gaps' });
    await scene.reports('plain=1');
    new KubeletVolume(path).publish({ a: '2' });
    await scene.reports('a=2');
    for (const name of ['..data', 'a']) unlinkSync(join(path, name));
    await scene.reports('plain=1');
  },

  async 'a member of a group that is a file, a directory, and a link into a volume'(scene) {
    const [one, two] = [join(scene.root, 'one'), join(scene.root, 'two')];
    const volume = new KubeletVolume(join(scene.root, 'v'));
    volume.publish({ key: 'volume' });
    writeFileSync(one, '1');
    writeFileSync(two, '1');
    await scene.watch([one, two], { grace: 'shorter than gaps' });
    await scene.reports('one=1 two=1');
    unlinkSync(one);
    mkdirSync(one);
    await scene.fails('ERR_TARGET_DIRECTORY');
    await scene.comesTo('two=1');
    rmSync(one, { recursive: true });
    symlinkSync('v/key', one);
    await scene.reports('one=volume two=1');
    volume.publish({ key: 'volume!' });
    await scene.reports('one=volume! two=1');
    placeFile(one, 'file', scene.root);
    await scene.reports('one=file two=1');
  },

  async 'a tree in which directories are made, filled, moved and removed at any depth'(scene) {
    const root = join(scene.root, 'tree');
    placeFile(join(root, 'a'), '1', scene.root);
    await scene.watch(root, { recursive: true, grace: 'shorter than gaps' });
    await scene.reports('a=1');
    for (const round of ['1', '2']) {
      placeFile(join(root, 'x/y/z/file'), round, scene.root);
      await scene.comesTo(`a=1 x/y/z/file=${round}`);
      placeFile(join(root, 'x/y/z/file2'), round, scene.root);
      await scene.comesTo(`a=1 x/y/z/file2=${round} x/y/z/file=${round}`);
      renameSync(join(root, 'x/y'), join(root, 'moved'));
      await scene.comesTo(`a=1 moved/z/file2=${round} moved/z/file=${round}`);
      placeFile(join(root, 'moved/z/file'), `${round}!`, scene.root);
      await scene.comesTo(`a=1 moved/z/file2=${round} moved/z/file=${round}!`);
      renameSync(join(root, 'moved'), join(scene.root, `out-${round}`));
      await scene.comesTo('a=1');
      renameSync(join(scene.root, `out-${round}`), join(root, 'in'));
      await scene.comesTo(`a=1 in/z/file2=${round} in/z/file=${round}!`);
      placeFile(join(root, 'in/z/file'), round, scene.root);
      await scene.comesTo(`a=1 in/z/file2=${round} in/z/file=${round}`);
      rmSync(join(root, 'in'), { recursive: true });
      await scene.comesTo('a=1');
    }
  },

  async 'a tree from which a directory is removed while it is watched, and to which it is added again'(
    scene,
  ) {
    const root = join(scene.root, 'tree');
    for (const key of ['a', 'modules/x', 'modules/deep/y']) placeFile(join(root, key), '1', scene.root);
    await scene.watch(root, { recursive: true });
    await scene.reports('a=1 modules/deep/y=1 modules/x=1');
    for (const round of ['2', '3']) {
      await scene.watcher.remove('modules');
      await scene.reports(`a=${Number(round) - 1}`);
      placeFile(join(root, 'modules/x'), round, scene.root);
      placeFile(join(root, `modules/new/${round}`), round, scene.root);
      placeFile(join(root, 'a'), round, scene.root);
      await scene.reports(`a=${round}`);
      await scene.watcher.add('modules/x');
      await scene.reports(`a=${round} modules/x=${round}`);
      placeFile(join(root, 'modules/x'), 'one', scene.root);
      await scene.reports(`a=${round} modules/x=one`);
      await scene.watcher.add(join(root, 'modules'));
      const news = round === '2' ? 'modules/new/2=2' : 'modules/new/2=2 modules/new/3=3';
      // A file that was written and renamed within one tick of the clock settles; the others do not wait for it.
      await scene.comesTo(`a=${round} modules/deep/y=1 ${news} modules/x=one`);
      placeFile(join(root, 'modules/deep/y'), '0', scene.root);
      await scene.reports(`a=${round} modules/deep/y=0 ${news} modules/x=one`);
      placeFile(join(root, 'modules/deep/y'), '1', scene.root);
      await scene.reports(`a=${round} modules/deep/y=1 ${news} modules/x=one`);
    }
  },

  async 'in a tree a file, a directory and a link in one place'(scene) {
    const root = join(scene.root, 'tree');
    placeFile(join(root, 'a'), 'file', scene.root);
    placeFile(join(root, 'b'), 'b', scene.root);
    await scene.watch(root, { recursive: true, grace: 'shorter than gaps' });
    await scene.reports('a=file b=b');
    for (const round of ['1', '2']) {
      unlinkSync(join(root, 'a'));
      placeFile(join(root, 'a/inner'), round, scene.root);
      await scene.comesTo(`a/inner=${round} b=b`);
      rmSync(join(root, 'a'), { recursive: true });
      symlinkSync('b', join(root, 'a'));
      await scene.comesTo('a=b b=b');
      unlinkSync(join(root, 'a'));
      placeFile(join(root, 'a'), round, scene.root);
      await scene.comesTo(`a=${round} b=b`);
    }
  },

  async 'a tree behind a link that is away for a moment and then leads elsewhere'(scene) {
    for (const name of ['one', 'two']) placeFile(join(scene.root, name, 'deep/file'), name, scene.root);
    const link = join(scene.root, 'link');
    symlinkSync('one', link);
    await scene.watch(link, { recursive: true });
    await scene.reports('deep/file=one');
    for (const name of ['two', 'one']) {
      unlinkSync(link);
      await scene.unreported();
      symlinkSync(name, link);
      await scene.comesTo(`deep/file=${name}`);
      placeFile(join(scene.root, name, 'deep/file'), `${name}!`, scene.root);
      await scene.comesTo(`deep/file=${name}!`);
      placeFile(join(scene.root, name, 'deep/file'), name, scene.root);
      await scene.comesTo(`deep/file=${name}`);
    }
  },

  async 'a volume in a tree, swapped in both shapes'(scene) {
    const root = join(scene.root, 'tree');
    const publish = (swap: 'rename' | 'remove', version: string): void =>
      void new KubeletVolume(join(root, 'v'), { swap }).publish({ key: version });
    publish('rename', '1');
    await scene.watch(root, { recursive: true, grace: 'shorter than gaps' });
    const text = (version: string): string => `v/key=${version}`;
    await scene.reports(text('1'));
    for (const [swap, version] of [
      ['rename', '2'],
      ['remove', '3'],
      ['rename', '4'],
    ] as const) {
      publish(swap, version);
      await scene.comesTo(text(version));
    }
  },

  async 'a tree whose root becomes a file, and a tree again'(scene) {
    const root = join(scene.root, 'tree');
    placeFile(join(root, 'a'), '1', scene.root);
    await scene.watch(root, { recursive: true, grace: 'shorter than gaps' });
    await scene.reports('a=1');
    rmSync(root, { recursive: true });
    placeFile(root, 'file', scene.root);
    await scene.fails('ERR_TARGET_PATH');
    unlinkSync(root);
    placeFile(join(root, 'x/y/b'), '2', scene.root);
    await scene.comesTo('x/y/b=2');
    placeFile(join(root, 'x/y/b'), '3', scene.root);
    await scene.comesTo('x/y/b=3');
  },
};

/**
 * Between two writes of one writer something is checked: in real time a stall of the machine there would end the
 * settling.
 */
export const setScenariosInFakeTime: Scenarios = {
  async 'a file of a plain directory written in place is reported when it is complete'(scene) {
    const directory = join(scene.root, 'conf.d');
    for (const name of ['a', 'b']) placeFile(join(directory, name), '1', scene.root);
    await scene.watch(directory);
    await scene.reports('a=1 b=1');
    await rewriteAndAppend(scene, join(directory, 'a'), (content) => `a=${content} b=1`);
  },

  async 'a member of a group written in place is reported when it is complete'(scene) {
    const volume = new KubeletVolume(join(scene.root, 'v'));
    volume.publish({ a: '1' });
    const file = join(scene.root, 'b');
    writeFileSync(file, '1');
    await scene.watch([volume.path('a'), file]);
    await scene.reports('a=1 b=1');
    await rewriteAndAppend(scene, file, (content) => `a=1 b=${content}`);
  },

  async 'a file of a tree written in place is reported when it is complete'(scene) {
    const root = join(scene.root, 'tree');
    for (const name of ['deep/a', 'b']) placeFile(join(root, name), '1', scene.root);
    await scene.watch(root, { recursive: true });
    await scene.reports('b=1 deep/a=1');
    await rewriteAndAppend(scene, join(root, 'deep/a'), (content) => `b=1 deep/a=${content}`);
  },
};
