/** More kinds of schedules: publishers with ways of their own, and what happens to whole directories. */
import { removeAll, write, type Fs } from './actors/calls.js';
import { IN_MEMORY, issue, mountInPod, unmountAndRemove } from './actors/cert-manager.js';
import { makeTree, mountOver, renameAndBack, replace } from './actors/directories.js';
import { gitSync } from './actors/git-sync.js';
import { KUBELET, publish, publisher, type Payload } from './actors/volumes.js';
import {
  AT_ONCE,
  directories,
  files,
  GRACE_MS,
  KEYS,
  options,
  pausesOf,
  PAUSES_MS,
  payloads,
  SETTLE_MS,
  type Kind,
  type Scene,
} from './kinds.js';
import * as views from './views.js';
import type { Steps, World } from './world.js';

const TOP = '/m';
const ABOVE = `${TOP}/p`;
export const TARGET = `${ABOVE}/d`;
export const PLAIN = ['a', 'b', 'e/c'];
const TURNS = '/m/t';

/** `parcel` watches nothing but trees. */
const SHAPES = {
  fs: ['file', 'directory', 'tree', 'group'],
  parcel: ['tree', 'tree', 'tree', 'group'],
} as const;

/**
 * One way to watch what is in a directory: one file, the directory, a tree, or a group.
 * @param unit what belongs together; undefined: each file is for itself.
 * @param groupUnit the same for a group.
 */
export function anyTarget(
  world: World,
  directory: string,
  keys: readonly string[],
  unit?: string,
  groupUnit = unit,
): Scene {
  const { choices } = world;
  const shape = choices.oneOf(SHAPES[world.backend]);
  const paths = [keys[0], keys.at(-1)].map((key) => `${directory}/${key ?? ''}`);
  const [path = ''] = paths;
  const isTree = shape === 'tree' || (shape === 'directory' && unit === undefined);
  const common = { options: options(world), isTree, heldMs: unit === undefined ? SETTLE_MS : AT_ONCE };
  switch (shape) {
    case 'file':
      return {
        ...common,
        path,
        unitOf: () => unit ?? path,
        see: (fs) => views.file(fs, path),
      };
    case 'group':
      return {
        ...common,
        path: paths,
        unitOf: (key) => groupUnit ?? key,
        see: (fs) => views.group(fs, paths),
      };
    case 'directory':
    case 'tree':
      return {
        ...common,
        path: directory,
        options: shape === 'tree' ? { ...common.options, recursive: true } : common.options,
        unitOf: (key) => unit ?? `${directory}/${key}`,
        see: (fs) => views.directory(fs, directory, shape === 'tree'),
      };
  }
}

/**
 * Fills a directory that does not exist or is empty: with a volume, or with plain files.
 * @param revision names it. @param content what it contains, if that was there before.
 */
type Fill = (fs: Fs, directory: string, revision: number, content?: number) => Steps;

const textsOf = (keys: readonly string[], revision: number): Payload =>
  new Map(keys.map((key) => [key, `${key}@${revision}`]));

function filler(world: World, isVolume: boolean): Fill {
  if (!isVolume)
    return (fs, directory, revision, content = revision) =>
      makeTree(fs, world, directory, textsOf(PLAIN, content));
  return function* (fs, directory, revision, content = revision) {
    yield* makeTree(fs, world, directory, new Map());
    const at = { fs, world, directory, unit: TARGET, manner: KUBELET };
    yield* publish(at, `..2030_01_01_00_00_00.${revision}`, textsOf(KEYS, content));
  };
}

/** The target of a schedule in which directories change, and what fills it. */
function changing(world: World): { readonly scene: Scene; readonly fill: Fill; readonly isVolume: boolean } {
  directories(world, TOP, ABOVE, TARGET);
  const isVolume = world.choices.choose(2) === 1;
  const keys = isVolume ? KEYS : PLAIN;
  const scene = anyTarget(world, TARGET, keys, isVolume ? TARGET : undefined);
  return { scene, fill: filler(world, isVolume), isVolume };
}

/** Does something to directories once or twice. */
function times(world: World): readonly { readonly before: number; readonly pause: number }[] {
  const { choices } = world;
  const count = 1 + choices.choose(2);
  return Array.from({ length: count }, () => ({
    before: choices.oneOf(PAUSES_MS),
    pause: choices.oneOf(PAUSES_MS),
  }));
}

export const SCENES: Readonly<Record<string, Kind>> = {
  /** A publisher with two revisions, which it fills in turn. */
  alternating(world) {
    const { choices } = world;
    directories(world, '/m', TURNS);
    const published = payloads(world, KEYS, 0, 3 + choices.choose(3));
    const pauses = published.map(() => choices.oneOf([0, 0, 1, 7, 700]));
    world.actor('publisher', function* (fs) {
      const at = { fs, world, directory: TURNS, manner: { ...KUBELET, isTidy: false } };
      for (const [index, payload] of published.entries()) {
        yield pauses[index] ?? 0;
        const name = `..2030_01_01_00_00_00.${index % 2}`;
        yield* removeAll(fs, `${TURNS}/${name}`);
        yield* publish(at, name, payload);
      }
    });
    const directory = choices.oneOf([TURNS, `${TURNS}/certs`]);
    const shape = choices.oneOf(['directory', 'group', 'tree'] as const);
    const common = { unitOf: () => TURNS, heldMs: GRACE_MS };
    if (shape === 'group') {
      const paths = KEYS.map((key) => `${TURNS}/${key}`);
      return { ...common, path: paths, options: options(world), see: (fs) => views.group(fs, paths) };
    }
    const isTree = shape === 'tree';
    return {
      ...common,
      path: directory,
      options: isTree ? { ...options(world), recursive: true } : options(world),
      isTree,
      see: (fs) => (directory === TURNS ? views.directory(fs, TURNS, isTree) : views.inside(fs, directory)),
    };
  },

  /** A repository of git-sync. */
  'git-sync'(world) {
    directories(world, '/git');
    const commits = payloads(world, KEYS);
    const pauses = pausesOf(world, commits);
    world.actor('git-sync', (fs) => gitSync(fs, world, '/git', commits, pauses));
    return { ...anyTarget(world, '/git/link', KEYS, undefined, '/git/link'), heldMs: GRACE_MS };
  },

  /** A volume of cert-manager's csi-driver, mounted before the program starts or at any time, and once more. */
  'cert-manager'(world) {
    const { choices, machine } = world;
    directories(world, IN_MEMORY, '/pod');
    machine.mount(IN_MEMORY, { type: 'tmpfs' });
    const keys = ['tls.crt', 'tls.key', 'ca.crt'];
    const [issued, again] = [payloads(world, keys), payloads(world, keys, 100)];
    const pauses = pausesOf(world, issued);
    const isRemounted = choices.choose(3) === 2;
    world.actor('csi-driver', function* (fs) {
      const at = { fs, world, unit: '/pod' };
      yield* issue(at, issued.slice(0, 1), [], 1_000);
      let mount = mountInPod(world, '/pod');
      yield;
      yield* issue(at, issued.slice(1), pauses, 2_000);
      if (!isRemounted) return;
      yield* unmountAndRemove(fs, world, mount, '/pod');
      yield* issue(at, again.slice(0, 1), pauses, 3_000);
      mount = mountInPod(world, '/pod');
      yield;
      yield* issue(at, again.slice(1), pauses, 4_000);
    });
    return { ...anyTarget(world, '/pod', keys, '/pod'), isSilent: true };
  },

  /** A directory, or one above it, is removed and made again, perhaps as it was. */
  recreated(world) {
    const { scene, fill } = changing(world);
    const removed = world.choices.oneOf([TARGET, ABOVE, TOP]);
    const rounds = times(world);
    const content = world.choices.oneOf([undefined, 0]);
    world.actor('administrator', function* (fs) {
      yield* fill(fs, TARGET, 0);
      for (const [index, { before, pause }] of rounds.entries()) {
        yield before;
        yield* removeAll(fs, removed);
        yield pause;
        yield* fill(fs, TARGET, index + 1, content);
      }
    });
    return scene;
  },

  /** A directory, or one above it, is renamed and renamed back while its volume is published, or replaced and then changed. */
  renamed(world) {
    const { choices, machine } = world;
    const { scene, fill, isVolume } = changing(world);
    const moved = choices.oneOf([ABOVE, TARGET, TOP]);
    const isReplaced = choices.choose(2) === 1;
    const isKept = choices.choose(2) === 1;
    const rounds = times(world);
    if (isVolume && !isReplaced) {
      // kubelet and the container know it by different paths.
      directories(world, '/host');
      machine.mount('/host', { type: 'ext4', bind: TARGET });
      const published = payloads(world, KEYS);
      const pauses = pausesOf(world, published);
      world.actor('kubelet', (fs) => {
        const at = { fs, world, directory: '/host', manner: KUBELET };
        return publisher(at, published, pauses);
      });
    }
    world.actor('administrator', function* (fs) {
      if (!isVolume || isReplaced) yield* fill(fs, TARGET, 0);
      for (const [index, { before, pause }] of rounds.entries()) {
        yield before;
        if (!isReplaced) {
          yield* renameAndBack(fs, moved, pause);
          continue;
        }
        yield* fill(fs, `${moved}.new${TARGET.slice(moved.length)}`, index + 1);
        const away = `${moved}.${index}`;
        yield* replace(fs, moved, away, `${moved}.new`, pause);
        if (!isKept) yield* removeAll(fs, away);
        yield pause;
        yield* fill(fs, TARGET, index + 10);
      }
    });
    return scene;
  },

  /** A file that is mounted by itself, and written in place where it comes from. */
  'mounted-file'(world) {
    const { choices, machine } = world;
    const [path, source] = [`${TOP}/f`, '/host/f'];
    directories(world, TOP, '/host');
    const { fs } = machine.process();
    for (const each of [path, source]) Array.from(write(fs, each, 'the first text'));
    machine.mount(path, { type: 'ext4', bind: source });
    files(world, [source], ['shell', 'rsync']);
    const shape = choices.oneOf(['file', 'directory', 'tree'] as const);
    return {
      path: shape === 'file' ? path : TOP,
      options: shape === 'tree' ? { ...options(world), recursive: true } : options(world),
      isTree: shape === 'tree',
      unitOf: () => source,
      see: (observer) => views.file(observer, path),
    };
  },

  /** Something is mounted over a directory, or one above it, and perhaps unmounted. */
  mounted(world) {
    const { choices } = world;
    const { scene, fill } = changing(world);
    directories(world, '/other');
    const on = choices.oneOf([TARGET, ABOVE]);
    const type = choices.oneOf(['tmpfs', 'ext4', 'nfs4']);
    const isBound = choices.choose(2) === 1;
    const rounds = times(world).map((each) => ({ ...each, isUnmounted: choices.choose(2) === 1 }));
    const below = TARGET.slice(on.length);
    world.actor('administrator', function* (fs) {
      yield* fill(fs, TARGET, 0);
      for (const [index, { before, pause, isUnmounted }] of rounds.entries()) {
        const bind = `/other/${index}`;
        if (isBound) yield* fill(fs, `${bind}${below}`, index + 1);
        yield before;
        yield* mountOver(
          world,
          on,
          isBound ? { type, bind } : { type },
          isBound ? nothing() : fill(fs, TARGET, index + 1),
          isUnmounted ? pause : undefined,
        );
      }
    });
    return { ...scene, isSilent: true };
  },
};

function* nothing(): Steps {}
