/** Files of which one is replaced by rename all the time: it is there at every instant. */
import { write, type Fs } from './actors/calls.js';
import { directories, options, rename, type Kind } from './kinds.js';
import * as views from './views.js';
import type { Steps, World } from './world.js';

const FILES = '/m/d';
const BUSY = `${FILES}/busy`;
const PATHS = [`${FILES}/a`, BUSY, `${FILES}/z`];
const TIMES = 40;

function* replace(fs: Fs, pauseMs: number): Steps {
  for (let count = 0; count < TIMES; count += 1) {
    yield* write(fs, '/m/next', `version ${count}`);
    fs.renameSync('/m/next', BUSY);
    yield pauseMs;
  }
}

/** Where a listing or a lookup may miss what is renamed over meanwhile, and where none does. */
const TYPES = ['btrfs', 'fuse.bindfs', 'ext4'];

function busy(
  watch: (world: World) => Pick<ReturnType<Kind>, 'path' | 'options' | 'isTree'>,
  see: (fs: Fs) => views.View,
): Kind {
  return (world) => {
    const { choices, machine } = world;
    directories(world, '/m');
    const type = choices.oneOf(TYPES);
    machine.mount('/m', { type });
    directories(world, FILES);
    const { fs } = machine.process();
    for (const path of PATHS) for (const _ of write(fs, path, 'version 0')) continue;
    const pauseMs = choices.oneOf([5, 1, 12]);
    world.actor('writer', (calls) => replace(calls, pauseMs));
    // A look at a file server takes several turns, so that a resync may see a change before its event.
    const isSilent = type.startsWith('fuse');
    return { ...watch(world), isSilent, unitOf: (key) => key, see };
  };
}

export const BUSY_KINDS: Readonly<Record<string, Kind>> = {
  'busy-file': busy(
    (world) => ({ path: BUSY, options: options(world) }),
    (fs) => rename(views.group(fs, [BUSY]), () => 'busy'),
  ),
  'busy-group': busy(
    (world) => ({ path: PATHS, options: options(world) }),
    (fs) => views.group(fs, PATHS),
  ),
  'busy-directory': busy(
    (world) => ({ path: FILES, options: options(world) }),
    (fs) => views.directory(fs, FILES, false),
  ),
  'busy-tree': busy(
    (world) => ({ path: FILES, options: { ...options(world), recursive: true }, isTree: true }),
    (fs) => views.directory(fs, FILES, true),
  ),
};
