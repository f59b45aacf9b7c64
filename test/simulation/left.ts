/** A key leaves its volume: its link becomes a plain file, which is written for a while. */
import { constants } from 'node:fs';

import { exists, write, type Fs } from './actors/calls.js';
import { inPlace } from './actors/editors.js';
import { directories, options, PAUSES_MS, volume, type Kind } from './kinds.js';
import * as views from './views.js';
import type { Steps, World } from './world.js';

const VOLUME = '/m/v';
const LINKS = '/m/d';
const NEXT = '/next';
const KEYS = ['a', 'b', 'c'];
const APPEND = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND;

/** What is published has an `@`, and what an administrator writes has none. */
const unitOf = (path: string, text: string): string => (text.includes('@') ? VOLUME : path);

function* leave(fs: Fs, world: World, name: string, pausesMs: readonly number[], isLinked: boolean): Steps {
  const path = `${LINKS}/${name}`;
  const [pauseMs = 0, ...rest] = pausesMs;
  yield pauseMs;
  fs.unlinkSync(path);
  yield;
  for (const [count, pause] of rest.entries()) {
    yield* inPlace(world, path, write(fs, path, `file ${count} `, 1, 0, APPEND));
    yield pause;
  }
  if (!isLinked || !exists(fs, path)) return;
  fs.symlinkSync(`../v/${name}`, NEXT);
  yield;
  fs.renameSync(NEXT, path);
  yield;
}

function left(isRecursive: boolean): Kind {
  return (world) => {
    const { choices, machine } = world;
    directories(world, '/m', VOLUME, LINKS);
    const { fs } = machine.process();
    for (const key of KEYS) fs.symlinkSync(`../v/${key}`, `${LINKS}/${key}`);
    volume(world, VOLUME, KEYS);
    const writes = Array.from({ length: 1 + choices.choose(10, 0.9) }, () => choices.oneOf([30, 45, 7, 80]));
    const pauses = [choices.oneOf(PAUSES_MS), ...writes];
    const [name, isLinked] = [choices.oneOf(KEYS), choices.choose(3) === 1];
    world.actor('administrator', (calls) => leave(calls, world, name, pauses, isLinked));
    return {
      path: isRecursive ? '/m' : LINKS,
      options: isRecursive ? { ...options(world), recursive: true } : options(world),
      isTree: true,
      // The file belongs to the volume that it leaves, whose other keys may go at the same time.
      areTogether: true,
      unitOf: (key, text) => unitOf(isRecursive ? `/m/${key}` : `${LINKS}/${key}`, text),
      see: (observer) => views.directory(observer, isRecursive ? '/m' : LINKS, isRecursive),
    };
  };
}

export const LEFT_KINDS: Readonly<Record<string, Kind>> = {
  'left-links': left(false),
  'left-tree': left(true),
};
