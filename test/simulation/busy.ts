/**
 * Files of which one is replaced by rename all the time: it is there at every instant. In some kinds, another one is a log,
 * which is written all the time: nobody waits for it.
 */
import { constants } from 'node:fs';

import { write, type Fs } from './actors/calls.js';
import { inPlace } from './actors/editors.js';
import { directories, options, type Kind } from './kinds.js';
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

const LOG = `${FILES}/log`;

/** More than what the first report may wait. */
const LOGGED_MS = 4_000;

function* log(fs: Fs, world: World, pauseMs: number): Steps {
  for (let count = 0; count < LOGGED_MS / pauseMs; count += 1) {
    const append = write(fs, LOG, `line ${count}`, 1, 0, constants.O_WRONLY | constants.O_APPEND);
    yield* inPlace(world, LOG, append);
    yield pauseMs;
  }
}

/** Where a listing or a lookup may miss what is renamed over meanwhile, and where none does. */
const TYPES = ['btrfs', 'fuse.bindfs', 'ext4'];

function busy(
  watch: (world: World) => Pick<ReturnType<Kind>, 'path' | 'options' | 'isTree'>,
  see: (fs: Fs) => views.View,
  isLogged = false,
): Kind {
  return (world) => {
    const { choices, machine } = world;
    directories(world, '/m');
    const type = choices.oneOf(TYPES);
    machine.mount('/m', { type });
    directories(world, FILES);
    const { fs } = machine.process();
    const paths = isLogged ? [...PATHS, LOG] : PATHS;
    for (const path of paths) for (const _ of write(fs, path, 'version 0')) continue;
    const pauseMs = choices.oneOf([5, 1, 12]);
    world.actor('writer', (calls) => replace(calls, pauseMs));
    if (isLogged) world.actor('logger', (calls) => log(calls, world, choices.oneOf([40, 20, 49])));
    // A look at a file server takes several turns, so that a resync may see a change before its event.
    const isSilent = type.startsWith('fuse');
    const unitOf = (key: string): string => (isLogged ? `${FILES}/${key}` : key);
    return { ...watch(world), isSilent, isLogged, unitOf, see };
  };
}

export const BUSY_KINDS: Readonly<Record<string, Kind>> = {
  'busy-file': busy(
    (world) => ({ path: BUSY, options: options(world) }),
    (fs) => views.file(fs, BUSY),
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
  'logged-directory': busy(
    (world) => ({ path: FILES, options: options(world), isTree: true }),
    (fs) => views.directory(fs, FILES, false),
    true,
  ),
  'logged-tree': busy(
    (world) => ({ path: FILES, options: { ...options(world), recursive: true }, isTree: true }),
    (fs) => views.directory(fs, FILES, true),
    true,
  ),
};
