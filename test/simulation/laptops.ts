/**
 * Where people develop: macOS (`--kind darwin`) and Windows (`--kind windows`). Names fold, events are late and merged, and in
 * some schedules lost without a word: then only a resync finds what has changed. The bundle is one for such a machine.
 */
import { told } from '../../src/core/ports/platform-path.js';
import { exists, removeAll, write, type Fs } from './actors/calls.js';
import { makeTree, renameAndBack } from './actors/directories.js';
import { EDITS } from './actors/editors.js';
import { respelled, SPELLED_EDITS } from './actors/spellings.js';
import { HABITS } from './consumers/habits.js';
import {
  AT_ONCE,
  directories,
  files,
  KEYS,
  PAUSES_MS,
  rename,
  volume,
  type Kind,
  type Scene,
} from './kinds.js';
import { Errno } from './machine/machine.js';
import * as views from './views.js';
import type { Steps, World } from './world.js';

interface Laptop {
  /** Where the home of the user is, on the machine. */
  readonly home: string;
  /** Where it may be found, too. */
  readonly links: string[];
  /** How long events are kept, ms. */
  readonly latenciesMs: number[];
  /** Programs that edit files. */
  readonly edits: string[];
  readonly habits: Scene['habits'];
}

const ON_LINKS = ['relink', 'linkAndCopy'];
const { regroups: _, ...HABITS_WITHOUT_PATHS } = HABITS;

const MAC: Laptop = {
  home: '/private/tmp',
  links: ['/tmp'],
  latenciesMs: [50, 120],
  edits: [...Object.keys(EDITS), ...Object.keys(SPELLED_EDITS)],
  habits: HABITS,
};

const WINDOWS: Laptop = {
  home: '/C:/m',
  links: [],
  latenciesMs: [0, 20],
  edits: MAC.edits.filter((name) => !ON_LINKS.includes(name)),
  habits: HABITS_WITHOUT_PATHS,
};

const PLAIN = ['a', 'b/c'];

/** Does what Windows may refuse, since something below is watched. */
function* unlessHeld(steps: Steps): Steps {
  try {
    yield* steps;
  } catch (error) {
    if (!(error instanceof Errno) || error.code !== 'EPERM') throw error;
  }
}

/** Directories in a tree come, go, and get other names. */
function moves(world: World, directory: string): void {
  const { choices } = world;
  const rounds = Array.from({ length: 1 + choices.choose(3) }, (_, index) => ({
    index,
    before: choices.oneOf(PAUSES_MS),
    what: choices.oneOf(['fill', 'remove', 'move', 'respell'] as const),
    pause: choices.oneOf(PAUSES_MS),
  }));
  world.actor('administrator', function* (fs) {
    for (const { index, before, what, pause } of rounds) {
      yield before;
      if (what === 'fill') yield* makeTree(fs, world, directory, textsOf(index));
      else if (!exists(fs, directory)) continue;
      else if (what === 'remove') yield* removeAll(fs, directory);
      else if (what === 'move') yield* unlessHeld(renameAndBack(fs, directory, pause));
      else yield* unlessHeld(spell(fs, directory));
    }
  });
}

/** The watched directory is removed and made again. */
function recreates(world: World, directory: string): void {
  const { choices } = world;
  const rounds = Array.from({ length: 1 + choices.choose(2) }, () => ({
    before: choices.oneOf(PAUSES_MS),
    pause: choices.oneOf(PAUSES_MS),
  }));
  world.actor('administrator', function* (fs) {
    yield* makeTree(fs, world, directory, textsOf(0));
    for (const [index, { before, pause }] of rounds.entries()) {
      yield before;
      yield* removeAll(fs, directory);
      yield pause;
      yield* makeTree(fs, world, directory, textsOf(index + 1));
    }
  });
}

/** A directory that the program may neither open nor enter. */
function locks({ machine, library }: World, directory: string): void {
  const { fs } = machine.process();
  fs.mkdirSync(directory, 0o755);
  for (const _ of write(fs, `${directory}/secret`, 'secret')) continue;
  fs.chmodSync(directory, 0o000);
  library.uid = 1_000;
}

const unlocked = (view: views.View): views.View =>
  new Map([...view].filter(([key]) => !key.startsWith('locked/')));

const textsOf = (revision: number): ReadonlyMap<string, string> =>
  new Map(PLAIN.map((key) => [key, `${key}@${revision}`]));

function* spell(fs: Fs, directory: string): Steps {
  fs.renameSync(directory, respelled(directory));
  yield;
}

function laptop({ home, links, latenciesMs, edits, habits }: Laptop): Kind {
  return (world) => {
    const { choices, machine } = world;
    const isLossy = choices.choose(3) === 1;
    if (isLossy) machine.limits.queuedEvents = 3;
    machine.latencyMs = choices.oneOf(latenciesMs);
    const root = `${choices.oneOf([home, ...links])}/d`;
    const names = home.split('/').slice(1);
    directories(world, ...names.map((_, at) => `/${names.slice(0, at + 1).join('/')}`), `${home}/d`);
    for (const link of links) {
      machine.process().fs.symlinkSync(home.slice(1), link);
      // It is as old as the system, so that no clock is set back to before it.
      const entry = machine.root.entry.inode.find(link.slice(1));
      if (entry) entry.inode.mtimeNs = entry.inode.ctimeNs = 0n;
    }
    const common = { lateMs: 6 * machine.latencyMs, ...(habits && { habits }) };
    const options = { backend: 'fs', resyncIntervalMs: 0 } as const;
    const unitOf = (key: string): string => `${root}/${key}`;
    if (links.length > 0 && choices.choose(4) === 1) {
      volume(world, root, KEYS);
      const see = (fs: Fs): views.View => views.directory(fs, root, false);
      return { ...common, options, isSilent: isLossy, path: root, heldMs: AT_ONCE, unitOf: () => root, see };
    }
    const shape = choices.oneOf(['file', 'group', 'directory', 'tree'] as const);
    const isRecreated = choices.choose(4) === 1;
    const paths = (isRecreated ? PLAIN : [choices.oneOf(['f', 'd']), 'caf\u00e9']).map(
      (name) => `${root}/${name}`,
    );
    const isLocked = shape === 'tree' && !isRecreated && choices.choose(4) === 1;
    if (isLocked) locks(world, `${root}/locked`);
    if (isRecreated) recreates(world, root);
    // Another program that is root writes files for itself.
    else files(world, paths, isLocked ? edits.filter((name) => name !== 'vault') : edits);
    // Ancestors are left to the resync on macOS.
    const watched = { ...common, options, isSilent: isLossy || (isRecreated && links.length > 0) };
    const [path = ''] = paths;
    if (shape === 'file') {
      const see = (fs: Fs): views.View => views.file(fs, path);
      return { ...watched, path: told(path), unitOf, see };
    }
    if (shape === 'group') {
      const see = (fs: Fs): views.View => rename(views.group(fs, paths), told);
      return {
        ...watched,
        path: paths.map(told),
        unitOf: (key) => paths.find((each) => told(each) === key) ?? key,
        see,
      };
    }
    const isTree = shape === 'tree';
    if (isTree && !isRecreated) moves(world, `${root}/e`);
    return {
      ...watched,
      path: told(root),
      options: isTree ? { ...options, recursive: true } : options,
      isTree: true,
      unitOf,
      see: (fs) => unlocked(views.directory(fs, root, isTree)),
    };
  };
}

/** Each runs on a machine of its own platform. */
export const LAPTOPS: Readonly<Record<string, Kind>> = { darwin: laptop(MAC), windows: laptop(WINDOWS) };
