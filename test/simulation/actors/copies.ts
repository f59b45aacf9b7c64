/** Programs whose files are not complete although their times or links say so. */
import { constants } from 'node:fs';

import type { Steps, World } from '../world.js';
import { CREATE, exists, write, type Fs } from './calls.js';

/** A day in 2029, s. */
const LONG_AGO = 1_870_000_000;

/** `cp -p`, `tar`: written in place, and then given an old time. */
export function* copy(fs: Fs, world: World, path: string, text: string, pauseMs: number): Steps {
  world.writes(path);
  yield* write(fs, path, text, 2, pauseMs);
  fs.utimesSync(path, LONG_AGO, LONG_AGO);
  world.ends(path);
  yield;
}

/** An empty file is renamed into place, and filled there. */
export function* placeholder(fs: Fs, world: World, path: string, text: string, pauseMs: number): Steps {
  const temporary = `${path}.tmp`;
  fs.closeSync(fs.openSync(temporary, constants.O_WRONLY | constants.O_CREAT, 0o644));
  yield;
  world.writes(path);
  fs.renameSync(temporary, path);
  yield pauseMs;
  yield* write(fs, path, text, 2);
  world.ends(path);
  yield;
}

/** A link is turned to a file, which is then written again through it. */
export function* relink(fs: Fs, world: World, path: string, text: string, pauseMs: number): Steps {
  const isLink = fs.lstatSync(path, { bigint: true, throwIfNoEntry: false })?.isSymbolicLink() === true;
  const file = `${path}.${isLink && fs.readlinkSync(path).endsWith('.1') ? 2 : 1}`;
  const link = `${path}.tmp`;
  if (exists(fs, file)) fs.unlinkSync(file);
  world.writes(file);
  yield* write(fs, file, `${text}, at first`);
  if (exists(fs, link)) fs.unlinkSync(link);
  fs.symlinkSync(file.slice(file.lastIndexOf('/') + 1), link);
  yield;
  fs.renameSync(link, path);
  yield pauseMs;
  world.writes(path);
  yield* write(fs, path, text, 2, pauseMs);
  for (const each of [path, file]) world.ends(each);
  yield;
}

/** A link is turned to a file that is then written, and given an old time. */
export function* linkAndCopy(fs: Fs, world: World, path: string, text: string, pauseMs: number): Steps {
  const file = `${path}.copy`;
  const link = `${path}.tmp`;
  for (const each of [file, link]) {
    if (exists(fs, each)) fs.unlinkSync(each);
    yield;
  }
  fs.symlinkSync(file.slice(file.lastIndexOf('/') + 1), link);
  yield;
  for (const each of [path, file]) world.writes(each);
  fs.renameSync(link, path);
  yield;
  yield* write(fs, file, text, 2, pauseMs, CREATE, path);
  fs.utimesSync(file, LONG_AGO, LONG_AGO);
  for (const each of [path, file]) world.ends(each);
  yield;
}
