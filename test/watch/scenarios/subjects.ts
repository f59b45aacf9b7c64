/** Kinds of targets with several files, and what each of them must live through. */
import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { expect } from 'vitest';

import { errno } from '../../support/errno.js';
import { fsWith, type CallName } from '../../support/intercepted-fs.js';
import { rounds } from '../../support/rounds.js';
import type { Scene, SceneOptions } from '../../support/scene.js';
import { placeFile } from './place-file.js';

/** Something of several files that is watched, at a directory of its own, and how it is published there. */
interface Subject {
  readonly target: string | readonly string[];
  readonly options?: SceneOptions;
  /** Makes it whole and of this version; parents come with it. */
  put(version: string): void;
  /** How a report of it reads. */
  text(version: string): string;
  /** Its files are reported each for itself. */
  readonly piecewise?: boolean;
  /** The call that reads it. */
  readonly read: CallName;
}

function volumeAt(directory: string, swap: 'rename' | 'remove'): Pick<Subject, 'put' | 'text'> {
  const volume = new KubeletVolume(directory, { swap });
  return {
    put: (version) => void volume.publish({ a: version, b: version }),
    text: (version) => `a=${version} b=${version}`,
  };
}

/** By name; `workshop` is on the same file system and not watched. */
export const subjects: Record<string, (directory: string, workshop: string) => Subject> = {
  'a volume swapped by rename': (directory) => ({
    ...volumeAt(directory, 'rename'),
    target: directory,
    read: 'open',
  }),
  'a volume swapped by remove and link': (directory) => ({
    ...volumeAt(directory, 'remove'),
    target: directory,
    read: 'open',
  }),
  'a plain directory': (directory, workshop) => ({
    target: directory,
    put: (version) => ['a', 'b'].forEach((name) => placeFile(join(directory, name), version, workshop)),
    text: (version) => `a=${version} b=${version}`,
    read: 'open',
  }),
  'a group within a volume': (directory) => ({
    ...volumeAt(directory, 'rename'),
    target: [join(directory, 'b'), join(directory, 'a')],
    text: (version) => `b=${version} a=${version}`,
    read: 'open',
  }),
  'a group of a volume swapped by remove and link, and files elsewhere': (directory, workshop) => {
    const volume = new KubeletVolume(join(directory, 'volume'), { swap: 'remove' });
    const files = [join(directory, 'x', 'file'), join(directory, 'y', 'file2')];
    return {
      target: [volume.path('key'), ...files],
      put: (version) => {
        volume.publish({ key: version });
        for (const file of files) placeFile(file, version, workshop);
      },
      text: (version) => `key=${version} file=${version} file2=${version}`,
      read: 'open',
    };
  },
  'a tree': (directory, workshop) => ({
    target: directory,
    options: { recursive: true },
    put: (version) =>
      ['a', 'below/b', 'below/deep/c'].forEach((key) => placeFile(join(directory, key), version, workshop)),
    text: (version) => `a=${version} below/b=${version} below/deep/c=${version}`,
    piecewise: true,
    read: 'readdir',
  }),
};

/** A subject in a scene. */
interface WatchedSubject extends Subject {
  readonly directory: string;
  /** Another one of the kind, elsewhere. */
  at(directory: string): Subject;
  watch(options?: SceneOptions): Promise<void>;
  /** The next report is of this version. */
  reports(version: string): Promise<void>;
}

export const requirements: Record<string, (scene: Scene, subject: WatchedSubject) => Promise<void>> = {
  async 'is reported whole in each version'(_, target) {
    target.put('0');
    await target.watch();
    await target.reports('0');
    for (let version = 1; version <= 5; version += 1) {
      target.put(`${version}`);
      await target.reports(`${version}`);
    }
  },

  async 'is missing at first, with all parents, and comes'(scene, target) {
    await target.watch();
    await scene.quiet();
    expect(scene.watcher.current?.kind).toBe('missing');
    mkdirSync(dirname(dirname(target.directory)), { recursive: true });
    await scene.quiet();
    for (const version of ['1', '2']) {
      target.put(version);
      await target.reports(version);
    }
  },

  async 'is deleted and created again immediately'(_, target) {
    target.put('0');
    await target.watch();
    await target.reports('0');
    for (const version of ['1', '2', '3']) {
      rmSync(target.directory, { recursive: true });
      target.put(version);
      await target.reports(version);
      target.put(`${version}!`);
      await target.reports(`${version}!`);
    }
  },

  async 'is deleted, reported missing, and made again'(scene, target) {
    target.put('0');
    await target.watch({ grace: 'shorter than gaps' });
    await target.reports('0');
    rmSync(target.directory, { recursive: true });
    await scene.comesTo('(missing)');
    for (const version of ['1', '2']) {
      target.put(version);
      await target.reports(version);
    }
  },

  async 'has any ancestor renamed away and replaced'(scene, target) {
    target.put('0');
    await target.watch();
    await target.reports('0');
    const { root } = scene;
    const within = target.directory.slice(root.length + 1).split('/');
    for (let depth = 1; depth <= within.length; depth += 1) {
      const place = join(root, ...within.slice(0, depth));
      const other = join(root, `other-${depth}`);
      target.at(join(other, ...within.slice(depth))).put(`${depth}`);
      renameSync(place, join(root, `old-${depth}`));
      renameSync(other, place);
      await target.reports(`${depth}`);
    }
    // Of what was renamed away nothing is heard.
    target.at(join(root, 'old-1', ...within.slice(1))).put('not watched any more');
    target.put('end');
    await target.reports('end');
  },

  async 'is quiet when all its bytes are the same again'(scene, target) {
    target.put('A');
    await target.watch();
    await target.reports('A');
    target.put('B');
    target.put('A');
    await scene.quiet();
    for (let noise = 0; noise < 50; noise += 1) writeFileSync(join(scene.root, `noise-${noise % 7}`), '');
    await scene.quiet();
    rmSync(target.directory, { recursive: true });
    target.put('A');
    await scene.quiet();
    target.put('C');
    await target.reports('C');
  },

  async 'changes many times during one turn: the last version is reported'(_, target) {
    target.put('0');
    await target.watch();
    await target.reports('0');
    const versions = rounds(30, 100);
    for (let version = 1; version <= versions; version += 1) target.put(`${version}`);
    await target.reports(`${versions}`);
    target.put('end');
    await target.reports('end');
  },

  async 'cannot be read for a while: an error, once, and then the newest version'(scene, target) {
    let isLocked = false;
    const fs = fsWith({
      each: ({ name, args: [path] }) => {
        const denied = name === target.read || (name === 'readdir' && target.read === 'readdir');
        if (isLocked && denied && String(path).startsWith(target.directory))
          throw errno('EACCES', String(path));
        return undefined;
      },
    });
    target.put('0');
    await target.watch({ fs, grace: 'shorter than gaps' });
    await target.reports('0');
    isLocked = true;
    if (target.piecewise) chmodSync(target.directory, 0o755);
    else target.put('1');
    await scene.fails('ERR_TARGET_ACCESS');
    await scene.quiet();
    isLocked = false;
    // Only the mode of a directory shows that it can be read again.
    chmodSync(target.directory, 0o755);
    target.put('2');
    await target.reports('2');
    expect(scene.errors).toHaveLength(1);
    expect(scene.watcher.status().target).toBe(scene.watcher.current?.kind);
  },

  async 'changes while its backend is dead, and again when it is back'(scene, target) {
    target.put('0');
    await target.watch({ fragile: true });
    await target.reports('0');
    for (const version of ['1', '2', '3']) {
      scene.fragile.die();
      rmSync(target.directory, { recursive: true });
      target.put(version);
      await target.reports(version);
      target.put(`${version}!`);
      await target.reports(`${version}!`);
    }
    expect(scene.watcher.status().restarts).toBeGreaterThan(0);
  },

  async 'changes, and is made again, when every hint is lost: the resync finds it'(scene, target) {
    target.put('0');
    await target.watch({ fragile: true, resync: true });
    await target.reports('0');
    scene.fragile.deaf = true;
    const before = scene.causes.length;
    target.put('1');
    await target.reports('1');
    rmSync(target.directory, { recursive: true });
    target.put('2');
    await target.reports('2');
    expect(new Set(scene.causes.slice(before))).toEqual(new Set(['resync']));
    scene.fragile.deaf = false;
    // The resync may be the first check that reads one.
    for (let version = 3; scene.causes.at(-1) === 'resync'; version += 1) {
      target.put(`${version}`);
      await target.reports(`${version}`);
    }
  },
};
