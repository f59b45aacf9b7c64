/**
 * What happens to volumes, directories, groups and trees, whoever gives the hints: what scenarios.test.ts does to a
 * file. With `fs` and `parcel` there is no resync: what they report, a native event led to.
 */
import {
  appendFileSync,
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';

import type { FileSystemCalls } from 'resilient-watcher';
import { KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import { errno, faultyFileSystem } from '../support/faulty-file-system.js';
import { openScene, type Scene, type SceneKind, type SceneOptions } from '../support/watch-scene.js';

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
  readonly read: keyof FileSystemCalls;
}

/** Writes a file in one step, made outside of what is watched. */
function place(file: string, text: string, workshop: string): void {
  mkdirSync(dirname(file), { recursive: true });
  const draft = join(workshop, `draft-of-${basename(file)}`);
  writeFileSync(draft, text);
  renameSync(draft, file);
}

function volumeAt(directory: string, swap: 'rename' | 'remove'): Pick<Subject, 'put' | 'text'> {
  const volume = new KubeletVolume(directory, { swap });
  return {
    put: (version) => void volume.publish({ a: version, b: version }),
    text: (version) => `a=${version} b=${version}`,
  };
}

/** By name; `workshop` is on the same file system and not watched. */
const subjects: Record<string, (directory: string, workshop: string) => Subject> = {
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
    put: (version) => ['a', 'b'].forEach((name) => place(join(directory, name), version, workshop)),
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
        for (const file of files) place(file, version, workshop);
      },
      text: (version) => `key=${version} file=${version} file2=${version}`,
      read: 'open',
    };
  },
  'a tree': (directory, workshop) => ({
    target: directory,
    options: { recursive: true },
    put: (version) =>
      ['a', 'below/b', 'below/deep/c'].forEach((key) => place(join(directory, key), version, workshop)),
    text: (version) => `a=${version} below/b=${version} below/deep/c=${version}`,
    piecewise: true,
    read: 'scandir',
  }),
};

/** A subject on its stage. */
interface Play extends Subject {
  readonly directory: string;
  /** Another one of the kind, elsewhere. */
  at(directory: string): Subject;
  watch(options?: SceneOptions): Promise<void>;
  /** It is reported in this version. */
  tells(version: string): Promise<void>;
}

const playsOfAll: Record<string, (scene: Scene, play: Play) => Promise<void>> = {
  async 'is reported whole in each version'(_, play) {
    play.put('0');
    await play.watch();
    await play.tells('0');
    for (let version = 1; version <= 5; version += 1) {
      play.put(`${version}`);
      await play.tells(`${version}`);
    }
  },

  async 'is missing at first, with all parents, and comes'(scene, play) {
    await play.watch();
    await scene.quiet();
    expect(scene.watcher.current?.kind).toBe('missing');
    mkdirSync(dirname(dirname(play.directory)), { recursive: true });
    await scene.quiet();
    for (const version of ['1', '2']) {
      play.put(version);
      await play.tells(version);
    }
  },

  async 'is deleted and made again at once'(_, play) {
    play.put('0');
    await play.watch();
    await play.tells('0');
    for (const version of ['1', '2', '3']) {
      rmSync(play.directory, { recursive: true });
      play.put(version);
      await play.tells(version);
      play.put(`${version}!`);
      await play.tells(`${version}!`);
    }
  },

  async 'is deleted, reported missing, and made again'(scene, play) {
    play.put('0');
    await play.watch({ grace: 'shorter than gaps' });
    await play.tells('0');
    rmSync(play.directory, { recursive: true });
    await scene.comesTo('(missing)');
    for (const version of ['1', '2']) {
      play.put(version);
      await play.tells(version);
    }
  },

  async 'has any ancestor renamed away and replaced'(scene, play) {
    play.put('0');
    await play.watch();
    await play.tells('0');
    const { root } = scene;
    const within = play.directory.slice(root.length + 1).split('/');
    for (let depth = 1; depth <= within.length; depth += 1) {
      const place = join(root, ...within.slice(0, depth));
      const other = join(root, `other-${depth}`);
      play.at(join(other, ...within.slice(depth))).put(`${depth}`);
      renameSync(place, join(root, `old-${depth}`));
      renameSync(other, place);
      await play.tells(`${depth}`);
    }
    // Of what was renamed away nothing is heard.
    play.at(join(root, 'old-1', ...within.slice(1))).put('not watched any more');
    play.put('end');
    await play.tells('end');
  },

  async 'is quiet when all its bytes are the same again'(scene, play) {
    play.put('A');
    await play.watch();
    await play.tells('A');
    play.put('B');
    play.put('A');
    await scene.quiet();
    for (let noise = 0; noise < 50; noise += 1) writeFileSync(join(scene.root, `noise-${noise % 7}`), '');
    await scene.quiet();
    rmSync(play.directory, { recursive: true });
    play.put('A');
    await scene.quiet();
    play.put('C');
    await play.tells('C');
  },

  async 'changes a hundred times while nobody could look: the last version is reported'(_, play) {
    play.put('0');
    await play.watch();
    await play.tells('0');
    for (let version = 1; version <= 100; version += 1) play.put(`${version}`);
    await play.tells('100');
    play.put('end');
    await play.tells('end');
  },

  async 'cannot be read for a while: an error, once, and then the newest version'(scene, play) {
    let isLocked = false;
    const fs = faultyFileSystem((name, [path]) => {
      const denied = name === play.read || (name === 'readdir' && play.read === 'scandir');
      if (isLocked && denied && String(path).startsWith(play.directory)) throw errno('EACCES', String(path));
      return undefined;
    });
    play.put('0');
    await play.watch({ fs, grace: 'shorter than gaps' });
    await play.tells('0');
    isLocked = true;
    if (play.piecewise) chmodSync(play.directory, 0o755);
    else play.put('1');
    await scene.fails('ERR_TARGET_ACCESS');
    await scene.quiet();
    isLocked = false;
    // Nothing but its mode tells that a directory can be read again.
    chmodSync(play.directory, 0o755);
    play.put('2');
    await play.tells('2');
    expect(scene.errors).toHaveLength(1);
    expect(scene.watcher.status().target).toBe(scene.watcher.current?.kind);
  },

  async 'changes while its backend is dead, and again when it is back'(scene, play) {
    play.put('0');
    await play.watch({ fragile: true });
    await play.tells('0');
    for (const version of ['1', '2', '3']) {
      scene.fragile.die();
      rmSync(play.directory, { recursive: true });
      play.put(version);
      await play.tells(version);
      play.put(`${version}!`);
      await play.tells(`${version}!`);
    }
    expect(scene.watcher.status().restarts).toBeGreaterThan(0);
  },

  async 'changes, and is made anew, when every hint is lost: the resync finds it'(scene, play) {
    play.put('0');
    await play.watch({ fragile: true, resync: true });
    await play.tells('0');
    scene.fragile.deaf = true;
    const before = scene.causes.length;
    play.put('1');
    await play.tells('1');
    rmSync(play.directory, { recursive: true });
    play.put('2');
    await play.tells('2');
    expect(new Set(scene.causes.slice(before))).toEqual(new Set(['resync']));
    scene.fragile.deaf = false;
    // The resync may be the first to look at one.
    for (let version = 3; scene.causes.at(-1) === 'resync'; version += 1) {
      play.put(`${version}`);
      await play.tells(`${version}`);
    }
  },
};

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
      place(join(path, 'a'), `plain ${round}`, scene.root);
      await scene.reports(`a=plain ${round}`);
      expect(scene.watcher.current?.kind).toBe('directory');
      place(join(path, 'a'), `plain! ${round}`, scene.root);
      await scene.reports(`a=plain! ${round}`);
      rmSync(path, { recursive: true });
      place(path, `file ${round}`, scene.root);
      await scene.reports(`file ${round}`);
      expect(scene.watcher.current?.kind).toBe('file');
      rmSync(path);
      place(join(path, 'b'), `plain ${round}`, scene.root);
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
    place(join(path, 'plain'), '1', scene.root);
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
    await scene.fails('ERR_TARGET_NOT_FILE');
    rmSync(one, { recursive: true });
    symlinkSync('v/key', one);
    await scene.reports('one=volume two=1');
    volume.publish({ key: 'volume!' });
    await scene.reports('one=volume! two=1');
    place(one, 'file', scene.root);
    await scene.reports('one=file two=1');
  },

  async 'a tree in which directories are made, filled, moved and removed at any depth'(scene) {
    const root = join(scene.root, 'tree');
    place(join(root, 'a'), '1', scene.root);
    await scene.watch(root, { recursive: true, grace: 'shorter than gaps' });
    await scene.reports('a=1');
    for (const round of ['1', '2']) {
      place(join(root, 'x/y/z/file'), round, scene.root);
      await scene.comesTo(`a=1 x/y/z/file=${round}`);
      place(join(root, 'x/y/z/file2'), round, scene.root);
      await scene.comesTo(`a=1 x/y/z/file2=${round} x/y/z/file=${round}`);
      renameSync(join(root, 'x/y'), join(root, 'moved'));
      await scene.comesTo(`a=1 moved/z/file2=${round} moved/z/file=${round}`);
      place(join(root, 'moved/z/file'), `${round}!`, scene.root);
      await scene.comesTo(`a=1 moved/z/file2=${round} moved/z/file=${round}!`);
      renameSync(join(root, 'moved'), join(scene.root, `out-${round}`));
      await scene.comesTo('a=1');
      renameSync(join(scene.root, `out-${round}`), join(root, 'in'));
      await scene.comesTo(`a=1 in/z/file2=${round} in/z/file=${round}!`);
      place(join(root, 'in/z/file'), round, scene.root);
      await scene.comesTo(`a=1 in/z/file2=${round} in/z/file=${round}`);
      rmSync(join(root, 'in'), { recursive: true });
      await scene.comesTo('a=1');
    }
  },

  async 'in a tree a file, a directory and a link in one place'(scene) {
    const root = join(scene.root, 'tree');
    place(join(root, 'a'), 'file', scene.root);
    place(join(root, 'b'), 'b', scene.root);
    await scene.watch(root, { recursive: true, grace: 'shorter than gaps' });
    await scene.reports('a=file b=b');
    for (const round of ['1', '2']) {
      unlinkSync(join(root, 'a'));
      place(join(root, 'a/inner'), round, scene.root);
      await scene.comesTo(`a/inner=${round} b=b`);
      rmSync(join(root, 'a'), { recursive: true });
      symlinkSync('b', join(root, 'a'));
      await scene.comesTo('a=b b=b');
      unlinkSync(join(root, 'a'));
      place(join(root, 'a'), round, scene.root);
      await scene.comesTo(`a=${round} b=b`);
    }
  },

  async 'a tree behind a link that is away for a moment and then leads elsewhere'(scene) {
    for (const name of ['one', 'two']) place(join(scene.root, name, 'deep/file'), name, scene.root);
    const link = join(scene.root, 'link');
    symlinkSync('one', link);
    await scene.watch(link, { recursive: true });
    await scene.reports('deep/file=one');
    for (const name of ['two', 'one']) {
      unlinkSync(link);
      await scene.unreported();
      symlinkSync(name, link);
      await scene.comesTo(`deep/file=${name}`);
      place(join(scene.root, name, 'deep/file'), `${name}!`, scene.root);
      await scene.comesTo(`deep/file=${name}!`);
      place(join(scene.root, name, 'deep/file'), name, scene.root);
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
    place(join(root, 'a'), '1', scene.root);
    await scene.watch(root, { recursive: true, grace: 'shorter than gaps' });
    await scene.reports('a=1');
    rmSync(root, { recursive: true });
    place(root, 'file', scene.root);
    await scene.fails('ERR_TARGET_NOT_DIRECTORY');
    unlinkSync(root);
    place(join(root, 'x/y/b'), '2', scene.root);
    await scene.comesTo('x/y/b=2');
    place(join(root, 'x/y/b'), '3', scene.root);
    await scene.comesTo('x/y/b=3');
  },
};

/** Writes a file in place, in two pieces, and appends: none of the pieces is reported. */
async function writeInPieces(scene: Scene, file: string, text: (content: string) => string): Promise<void> {
  const fd = openSync(file, 'w');
  await scene.unreported();
  writeSync(fd, 'two, ');
  await scene.unreported();
  writeSync(fd, 'the rest');
  closeSync(fd);
  await scene.reports(text('two, the rest'));
  appendFileSync(file, ' and more');
  await scene.reports(text('two, the rest and more'));
}

/** They look between two writes of one writer: in real time a stall of the machine there would end the settling. */
const inFakeTime: Record<string, (scene: Scene) => Promise<void>> = {
  async 'a file of a plain directory written in place is reported when it is complete'(scene) {
    const directory = join(scene.root, 'conf.d');
    for (const name of ['a', 'b']) place(join(directory, name), '1', scene.root);
    await scene.watch(directory);
    await scene.reports('a=1 b=1');
    await writeInPieces(scene, join(directory, 'a'), (content) => `a=${content} b=1`);
  },

  async 'a member of a group written in place is reported when it is complete'(scene) {
    const volume = new KubeletVolume(join(scene.root, 'v'));
    volume.publish({ a: '1' });
    const file = join(scene.root, 'b');
    writeFileSync(file, '1');
    await scene.watch([volume.path('a'), file]);
    await scene.reports('a=1 b=1');
    await writeInPieces(scene, file, (content) => `a=1 b=${content}`);
  },

  async 'a file of a tree written in place is reported when it is complete'(scene) {
    const root = join(scene.root, 'tree');
    for (const name of ['deep/a', 'b']) place(join(root, name), '1', scene.root);
    await scene.watch(root, { recursive: true });
    await scene.reports('b=1 deep/a=1');
    await writeInPieces(scene, join(root, 'deep/a'), (content) => `b=1 deep/a=${content}`);
  },
};

const kinds: readonly SceneKind[] =
  process.platform === 'linux' ? ['scripted', 'poll', 'fs', 'parcel'] : ['scripted', 'poll'];

describe.each(kinds)('hints from %s', (kind) => {
  describe.each(Object.entries(subjects))('%s', (_, subject) => {
    test.each(Object.entries(playsOfAll))('%s', async (_name, play) => {
      const scene = openScene(kind);
      const workshop = join(scene.root, 'workshop');
      mkdirSync(workshop);
      const directory = join(scene.root, 'run', 'pod', 'it');
      const own = subject(directory, workshop);
      await play(scene, {
        ...own,
        directory,
        at: (elsewhere) => subject(elsewhere, workshop),
        watch: (options) => scene.watch(own.target, { ...own.options, ...options }),
        tells: (version) =>
          own.piecewise ? scene.comesTo(own.text(version)) : scene.reports(own.text(version)),
      });
      expect(scene.errors.filter(({ name }) => name !== 'TargetError')).toEqual([]);
    });
  });

  const fake = kind === 'scripted' || kind === 'poll';
  const all = { ...scenarios, ...(fake && inFakeTime) };
  test.each(Object.entries(all))('%s', (_, scenario) => scenario(openScene(kind)));
});
