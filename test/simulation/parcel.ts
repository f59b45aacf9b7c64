/** Trees that the backend `parcel` watches; its native module may die, and inotify instances and watches may run out. */
import { exists, type Fs } from './actors/calls.js';
import { makeTree, renameAndBack } from './actors/directories.js';
import { limits, together } from './consumers/together.js';
import { denied } from './denied.js';
import { KINDS, PAUSES_MS, type Kind } from './kinds.js';
import { loadParcelFor } from './parcel-edges.js';
import { SCENES } from './scenes.js';
import { subdirectories } from './subdirectories.js';
import type { World } from './world.js';

const TREES: Readonly<Record<string, Kind>> = { ...KINDS, ...SCENES, denied };

const KINDS_OF_TREES = ['on', 'around', 'tree', 'renamed', 'recreated', 'mounted', 'git-sync', 'denied'];
const MOVABLE = ['on', 'around', 'tree', 'renamed', 'recreated'];

/** How long the module waits for more events, ms. */
const BATCH_MS = 50;

/** Whether the module dies or cannot watch, and whether a directory may be made while no watch is left, which it tells nobody. */
interface Trouble {
  readonly isDeafened: boolean;
  readonly isSilent: boolean;
}

function loads(world: World): Trouble {
  const { choices } = world;
  world.backend = 'parcel';
  const native = loadParcelFor(world);
  world.parcel = native;
  const trouble = choices.oneOf(['none', 'none', 'none', 'limits', 'deaths', 'both'] as const);
  if (trouble === 'none') return { isDeafened: false, isSilent: false };
  const limited = trouble === 'deaths' ? undefined : limits(world);
  const isSilent = limited === 'watches';
  if (trouble === 'limits') return { isDeafened: limited !== undefined, isSilent };
  const pauses = Array.from({ length: 1 + choices.choose(5) }, () => choices.oneOf(PAUSES_MS));
  void (async () => {
    for (const pause of pauses) {
      await world.sleep(pause);
      world.note('a signal', 'interrupts the thread');
      native.interrupt();
    }
  })();
  return { isDeafened: true, isSilent };
}

/** Directories of a tree are moved away and back before anybody can look. */
function moves(world: World, root: string): void {
  const { choices } = world;
  const rounds = Array.from({ length: 1 + choices.choose(3) }, () => ({
    before: choices.oneOf(PAUSES_MS),
    at: choices.choose(6),
  }));
  world.actor('administrator', function* (fs) {
    for (const { before, at } of rounds) {
      yield before;
      const all = [root, ...directoriesIn(fs, root)];
      const path = all[at % all.length] ?? root;
      if (!exists(fs, path)) continue;
      Array.from(renameAndBack(fs, path, 0));
      yield;
    }
  });
}

function directoriesIn(fs: Fs, path: string): string[] {
  if (!exists(fs, path)) return [];
  const found = fs.readdirSync(path, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const paths = found.map(({ name }) => `${path}/${name}`);
  return [...paths, ...paths.flatMap((each) => directoriesIn(fs, each))];
}

/** Directories are made in a tree, and files in them written again and again. */
function grows(world: World, root: string): void {
  const { choices } = world;
  const rounds = Array.from({ length: 2 + choices.choose(3) }, () => ({
    before: choices.oneOf(PAUSES_MS),
    name: choices.oneOf(['new/deep/f', 'new/g', 'n/e/w']),
  }));
  world.actor('program', function* (fs) {
    for (const [index, { before, name }] of rounds.entries()) {
      yield before;
      yield* makeTree(fs, world, root, new Map([[name, `${name}@${index}`]]));
    }
  });
}

export const parcel: Kind = (world) => {
  const { choices } = world;
  const { isDeafened, isSilent } = loads(world);
  const kind = choices.oneOf(KINDS_OF_TREES);
  const scene = TREES[kind]?.(world);
  if (!scene) throw new Error(kind);
  // Elsewhere, what is in the tree belongs together, or cannot be moved.
  const { path } = scene;
  if (typeof path === 'string' && MOVABLE.includes(kind) && choices.choose(2) === 1) moves(world, path);
  if (path === '/m' && choices.choose(2) === 1) grows(world, path);
  return { ...scene, isDeafened, isSilent: isSilent || scene.isSilent === true, lateMs: BATCH_MS };
};

/** Directories of the tree are replaced, also while the module lists it. */
export const replacedParcel: Kind = (world) => {
  const { isDeafened, isSilent } = loads(world);
  return { ...subdirectories(world), isDeafened, isSilent, lateMs: BATCH_MS };
};

/** Several watchers of one process. */
export async function parcels(world: World): Promise<void> {
  await together(world, loads(world).isDeafened);
}
