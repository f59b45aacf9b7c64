/** Targets without events, as on a file server: only polls find what has changed. */
import { constants } from 'node:fs';

import { write, type Fs } from './actors/calls.js';
import { directories, rename, type Kind } from './kinds.js';
import * as views from './views.js';
import type { Steps, World } from './world.js';

const VOLUME = '/m/v';
const LINKS = '/m/l';
const REVISION = '..2030_01_01_00_00_00.1';
const GAPS = 20;

/** A driver that publishes the same revision again and again, with a gap each time: never is it gone for 500 ms. */
function* driver(fs: Fs, world: World): Steps {
  const { choices } = world;
  fs.mkdirSync(`${VOLUME}/${REVISION}`, 0o755);
  yield* write(fs, `${VOLUME}/${REVISION}/a`, 'a', 1, 0, constants.O_WRONLY | constants.O_CREAT);
  fs.symlinkSync('..data/a', `${VOLUME}/a`);
  fs.symlinkSync(REVISION, `${VOLUME}/..data`);
  for (let count = 0; count < GAPS; count += 1) {
    yield choices.oneOf([440, 5, 40, 200]);
    world.begins(VOLUME);
    fs.unlinkSync(`${VOLUME}/..data`);
    yield choices.oneOf([60, 5, 300]);
    fs.symlinkSync(REVISION, `${VOLUME}/..data`);
    world.ends(VOLUME);
    yield;
  }
}

function polled(path: string | readonly string[], key: string, isRecursive = false): Kind {
  return (world) => {
    directories(world, '/m', VOLUME, LINKS);
    world.machine.process().fs.symlinkSync('../v/a', `${LINKS}/a`);
    world.actor('driver', (fs) => driver(fs, world));
    const pollIntervalMs = world.choices.oneOf([1_000, 200]);
    const resyncIntervalMs = world.choices.oneOf([0, 400, 700]);
    const common = { backend: 'poll', pollIntervalMs, resyncIntervalMs } as const;
    return {
      path,
      options: isRecursive ? { ...common, recursive: true } : common,
      isTree: isRecursive,
      unitOf: () => VOLUME,
      see: (fs) => rename(views.group(fs, [`${VOLUME}/a`]), () => key),
    };
  };
}

export const POLLED: Readonly<Record<string, Kind>> = {
  'polled-key': polled(`${VOLUME}/a`, 'a'),
  'polled-volume': polled(VOLUME, 'a'),
  'polled-group': polled([`${VOLUME}/a`], `${VOLUME}/a`),
  'polled-tree': polled(VOLUME, 'a', true),
  'polled-links': polled(LINKS, 'a'),
};
