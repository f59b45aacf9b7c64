/** What happens to a single file, and what must be reported. */
import {
  chmodSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { expect } from 'vitest';

import { rounds } from '../../support/rounds.js';
import type { Scene } from '../../support/scene.js';
import { rewriteAndAppend, writeInPieces } from './write-in-pieces.js';

export type Scenarios = Readonly<Record<string, (scene: Scene) => Promise<void>>>;

function replace(path: string, text: string): void {
  writeFileSync(join(dirname(path), '.editor-swap'), text);
  renameSync(join(dirname(path), '.editor-swap'), path);
}

export const fileScenarios: Scenarios = {
  async 'a plain file replaced by rename, as editors do'(scene) {
    const file = join(scene.root, 'app.yaml');
    writeFileSync(file, 'one');
    await scene.watch(file);
    await scene.reports('one');
    for (const text of ['two', 'three', 'four']) {
      replace(file, text);
      await scene.reports(text);
    }
  },

  async 'same size and same mtime'(scene) {
    const file = join(scene.root, 'app.yaml');
    writeFileSync(file, 'aaa');
    utimesSync(file, 1_700_000_000, 1_700_000_000);
    await scene.watch(file);
    await scene.reports('aaa');
    writeFileSync(file, 'bbb');
    utimesSync(file, 1_700_000_000, 1_700_000_000);
    await scene.reports('bbb');
    writeFileSync(join(scene.root, 'next'), 'ccc');
    utimesSync(join(scene.root, 'next'), 1_700_000_000, 1_700_000_000);
    renameSync(join(scene.root, 'next'), file);
    await scene.reports('ccc');
  },

  async 'a link and its target elsewhere, changed in place and by rename'(scene) {
    mkdirSync(join(scene.root, 'real'));
    mkdirSync(join(scene.root, 'etc'));
    const real = join(scene.root, 'real', 'app.yaml');
    writeFileSync(real, 'one');
    symlinkSync('../real/app.yaml', join(scene.root, 'etc', 'app.yaml'));
    await scene.watch(join(scene.root, 'etc', 'app.yaml'));
    await scene.reports('one');
    writeFileSync(real, 'two');
    await scene.reports('two');
    replace(real, 'three');
    await scene.reports('three');
  },

  async 'a chain of links, retargeted at its start, middle and end'(scene) {
    for (const name of ['a', 'b', 'c']) {
      mkdirSync(join(scene.root, name));
      writeFileSync(join(scene.root, name, 'app.yaml'), name);
    }
    const retarget = (target: string, link: string): void => {
      symlinkSync(target, join(scene.root, 'next'));
      renameSync(join(scene.root, 'next'), join(scene.root, link));
    };
    symlinkSync(join(scene.root, 'a'), join(scene.root, 'third'));
    symlinkSync('third', join(scene.root, 'second'));
    symlinkSync('second', join(scene.root, 'first'));
    await scene.watch(join(scene.root, 'first', 'app.yaml'));
    await scene.reports('a');
    retarget('b', 'third');
    await scene.reports('b');
    retarget('c', 'second');
    await scene.reports('c');
    retarget('a', 'first');
    await scene.reports('a');
  },

  async '".." after a link means the directory above its target'(scene) {
    mkdirSync(join(scene.root, 'deep', 'er'), { recursive: true });
    writeFileSync(join(scene.root, 'deep', 'app.yaml'), 'one');
    symlinkSync('deep/er', join(scene.root, 'link'));
    await scene.watch(`${scene.root}/link/../app.yaml`);
    await scene.reports('one');
    replace(join(scene.root, 'deep', 'app.yaml'), 'two');
    await scene.reports('two');
  },

  async 'a key of a volume through many swaps by rename'(scene) {
    const volume = new KubeletVolume(join(scene.root, 'volume'));
    volume.publish({ 'app.yaml': 'v0' });
    await scene.watch(volume.path('app.yaml'));
    await scene.reports('v0');
    for (let version = 1; version <= 20; version += 1) {
      volume.publish({ 'app.yaml': `v${version}` });
      await scene.reports(`v${version}`);
    }
  },

  async 'a nested key of a volume, with the links made before the swap'(scene) {
    const volume = new KubeletVolume(join(scene.root, 'volume'), { links: 'before' });
    volume.publish({ 'conf.d/app.yaml': 'v1' });
    await scene.watch(volume.path('conf.d/app.yaml'));
    await scene.reports('v1');
    volume.publish({ 'conf.d/app.yaml': 'v2', 'conf.d/other.yaml': 'x' });
    await scene.reports('v2');
  },

  async 'old revisions that are kept'(scene) {
    const volume = new KubeletVolume(join(scene.root, 'volume'), { keepOldRevisions: true });
    volume.publish({ 'app.yaml': 'v1' });
    await scene.watch(volume.path('app.yaml'));
    await scene.reports('v1');
    volume.publish({ 'app.yaml': 'v2' });
    await scene.reports('v2');
    volume.publish({ 'app.yaml': 'v3' });
    await scene.reports('v3');
  },

  async 'a swap by remove and link: a gap within the grace shows nothing but the new content'(scene) {
    const volume = new KubeletVolume(join(scene.root, 'volume'), { swap: 'remove' });
    volume.publish({ 'app.yaml': 'v1' });
    await scene.watch(volume.path('app.yaml'), { grace: 'longer than gaps' });
    await scene.reports('v1');
    for (const version of ['v2', 'v3']) {
      for (const step of volume.steps({ 'app.yaml': version })) {
        if (step.name === 'unlink' && step.path === volume.path('..data')) await scene.unreported();
      }
      await scene.reports(version);
    }
  },

  async 'a swap by remove and link: after a gap beyond the grace, missing and then the new content'(scene) {
    const volume = new KubeletVolume(join(scene.root, 'volume'), { swap: 'remove' });
    volume.publish({ 'app.yaml': 'v1' });
    await scene.watch(volume.path('app.yaml'), { grace: 'shorter than gaps' });
    await scene.reports('v1');
    for (const step of volume.steps({ 'app.yaml': 'v2' })) {
      if (step.name === 'unlink' && step.path === volume.path('..data')) await scene.reportsMissing();
    }
    await scene.reports('v2');
  },

  async 'a key that is removed from its volume and added again'(scene) {
    const volume = new KubeletVolume(join(scene.root, 'volume'));
    volume.publish({ 'app.yaml': 'v1', 'other.yaml': 'x' });
    await scene.watch(volume.path('app.yaml'), { grace: 'shorter than gaps' });
    await scene.reports('v1');
    volume.publish({ 'other.yaml': 'x' });
    await scene.reportsMissing();
    volume.publish({ 'app.yaml': 'v2', 'other.yaml': 'x' });
    await scene.reports('v2');
  },

  async 'a volume deleted and created again immediately'(scene) {
    const volume = new KubeletVolume(join(scene.root, 'volume'));
    volume.publish({ 'app.yaml': 'v1' });
    await scene.watch(volume.path('app.yaml'));
    await scene.reports('v1');
    for (const version of ['v2', 'v3', 'v4']) {
      volume.remove();
      volume.publish({ 'app.yaml': version });
      await scene.reports(version);
      volume.publish({ 'app.yaml': `${version}.1` });
      await scene.reports(`${version}.1`);
    }
  },

  async 'a volume deleted, reported missing, and made again'(scene) {
    const volume = new KubeletVolume(join(scene.root, 'volume'));
    volume.publish({ 'app.yaml': 'v1' });
    await scene.watch(volume.path('app.yaml'), { grace: 'shorter than gaps' });
    await scene.reports('v1');
    volume.remove();
    await scene.reportsMissing();
    volume.publish({ 'app.yaml': 'v2' });
    await scene.reports('v2');
    volume.publish({ 'app.yaml': 'v3' });
    await scene.reports('v3');
  },

  async 'a plain directory deleted and made again in the same turn'(scene) {
    const file = join(scene.root, 'etc', 'app.yaml');
    mkdirSync(dirname(file));
    writeFileSync(file, 'one');
    await scene.watch(file);
    await scene.reports('one');
    for (const text of ['two', 'three', 'four']) {
      rmSync(dirname(file), { recursive: true });
      mkdirSync(dirname(file));
      writeFileSync(file, text);
      await scene.reports(text);
      replace(file, `${text}!`);
      await scene.reports(`${text}!`);
    }
  },

  async 'any ancestor renamed away and replaced'(scene) {
    const at = (top: string): string => join(scene.root, top, 'b', 'c', 'app.yaml');
    for (const top of ['a', 'a2', 'a3']) {
      mkdirSync(dirname(at(top)), { recursive: true });
      writeFileSync(at(top), top);
    }
    await scene.watch(at('a'));
    await scene.reports('a');
    renameSync(join(scene.root, 'a'), join(scene.root, 'old'));
    renameSync(join(scene.root, 'a2'), join(scene.root, 'a'));
    await scene.reports('a2');
    renameSync(join(scene.root, 'a', 'b'), join(scene.root, 'a', 'old'));
    renameSync(join(scene.root, 'a3', 'b'), join(scene.root, 'a', 'b'));
    await scene.reports('a3');
    writeFileSync(join(scene.root, 'old', 'b', 'c', 'app.yaml'), 'not watched any more');
    replace(at('a'), 'end');
    await scene.reports('end');
  },

  async 'a file that does not exist yet, at any depth of missing parents'(scene) {
    const file = join(scene.root, 'a', 'b', 'c', 'app.yaml');
    await scene.watch(file);
    await scene.quiet();
    expect(scene.watcher.current?.kind).toBe('missing');
    mkdirSync(join(scene.root, 'a'));
    mkdirSync(join(scene.root, 'a', 'b'));
    await scene.quiet();
    mkdirSync(join(scene.root, 'a', 'b', 'c'));
    writeFileSync(file, 'one');
    await scene.reports('one');
    replace(file, 'two');
    await scene.reports('two');
  },

  async 'a volume that is mounted later'(scene) {
    const volume = new KubeletVolume(join(scene.root, 'var', 'run', 'volume'));
    await scene.watch(volume.path('conf.d/app.yaml'));
    volume.publish({ 'conf.d/app.yaml': 'v1' });
    await scene.reports('v1');
    volume.publish({ 'conf.d/app.yaml': 'v2' });
    await scene.reports('v2');
  },

  async 'quiet when nothing readable changed'(scene) {
    const file = join(scene.root, 'app.yaml');
    writeFileSync(file, 'one');
    await scene.watch(file);
    await scene.reports('one');
    utimesSync(file, new Date(), new Date());
    await scene.quiet();
    chmodSync(file, 0o600);
    await scene.quiet();
    chmodSync(scene.root, 0o700);
    await scene.quiet();
    writeFileSync(file, 'one');
    await scene.quiet();
    replace(file, 'one');
    await scene.quiet();
    for (let noise = 0; noise < 100; noise += 1)
      writeFileSync(join(scene.root, `noise-${noise % 7}`), `${noise}`);
    await scene.quiet();
    replace(file, 'two');
    await scene.reports('two');
  },

  async 'a new revision with equal contents is an event of its own'(scene) {
    const volume = new KubeletVolume(join(scene.root, 'volume'));
    volume.publish({ 'app.yaml': 'v1', other: '1' });
    await scene.watch(volume.path('app.yaml'));
    await scene.reports('v1');
    const { revision } = volume.publish({ 'app.yaml': 'v1', other: '2' });
    await scene.quiet();
    expect(scene.revisions).toEqual([revision]);
    expect(scene.watcher.current?.revision).toBe(revision);
    // It looks as if it had changed.
    utimesSync(volume.path('app.yaml'), 1, 1);
    await scene.watcher.check();
    volume.publish({ 'app.yaml': 'v2', other: '2' });
    await scene.reports('v2');
    expect(scene.revisions).toEqual([revision]);
  },

  async 'a change that is undone before the next check is not reported'(scene) {
    const volume = new KubeletVolume(join(scene.root, 'volume'));
    volume.publish({ 'app.yaml': 'A' });
    await scene.watch(volume.path('app.yaml'));
    await scene.reports('A');
    volume.publish({ 'app.yaml': 'B' });
    volume.publish({ 'app.yaml': 'A' });
    await scene.quiet();
    volume.publish({ 'app.yaml': 'C' });
    await scene.reports('C');
  },

  async 'hundreds of swaps during one turn: the last one is reported'(scene) {
    const volume = new KubeletVolume(join(scene.root, 'volume'));
    volume.publish({ 'app.yaml': 'v0' });
    await scene.watch(volume.path('app.yaml'));
    await scene.reports('v0');
    const swaps = rounds(200, 1_000);
    for (let version = 1; version <= swaps; version += 1) volume.publish({ 'app.yaml': `v${version}` });
    await scene.reports(`v${swaps}`);
  },

  async 'a file becomes a volume and a file again'(scene) {
    const path = join(scene.root, 'etc', 'app.yaml');
    mkdirSync(dirname(path));
    writeFileSync(path, 'plain');
    await scene.watch(path);
    await scene.reports('plain');
    rmSync(dirname(path), { recursive: true });
    new KubeletVolume(dirname(path)).publish({ 'app.yaml': 'volume' });
    await scene.reports('volume');
    rmSync(dirname(path), { recursive: true });
    mkdirSync(dirname(path));
    writeFileSync(path, 'plain again');
    await scene.reports('plain again');
  },

  async 'a directory, and then a loop, in the place of the file'(scene) {
    const path = join(scene.root, 'app.yaml');
    writeFileSync(path, 'one');
    await scene.watch(path, { grace: 'shorter than gaps' });
    await scene.reports('one');
    unlinkSync(path);
    mkdirSync(path);
    await scene.reports('');
    expect(scene.watcher.current?.kind).toBe('directory');
    rmSync(path, { recursive: true });
    symlinkSync('app.yaml', path);
    await scene.quiet();
    unlinkSync(path);
    writeFileSync(path, 'two');
    await scene.reports('two');
    expect(statSync(path).size).toBe(3);
    expect(scene.watcher.status().target).toBe('file');
  },
};

/**
 * Between two writes of one writer something is checked: in real time a stall of the machine there would end the
 * settling.
 */
export const fileScenariosInFakeTime: Scenarios = {
  async 'a plain file written in place is reported when it is complete'(scene) {
    const file = join(scene.root, 'app.yaml');
    writeFileSync(file, 'one');
    await scene.watch(file);
    await scene.reports('one');
    await rewriteAndAppend(scene, file, (content) => content);
  },

  async 'a file that is unlinked and written again is never reported in part'(scene) {
    const file = join(scene.root, 'app.yaml');
    writeFileSync(file, 'one');
    await scene.watch(file);
    await scene.reports('one');
    unlinkSync(file);
    await scene.unreported();
    await writeInPieces(scene, file, 'wx');
    await scene.reports('two, the rest');
  },
};
