/** vault-agent and consul-template: a rendered template replaces a file. */
import { constants } from 'node:fs';

import type { Steps, World } from '../world.js';
import { exists, type Fs } from './calls.js';

const EXCLUSIVE = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL;

/** A new file with a random name in the same directory is written, synced, gets the mode of the old one, and is renamed. */
export function* renderTemplate(fs: Fs, world: World, path: string, text: string, pauseMs: number): Steps {
  const directory = path.slice(0, path.lastIndexOf('/'));
  const temporary = `${directory}/${Math.floor(world.random() * 1e9)}`;
  world.begins(temporary);
  const fd = fs.openSync(temporary, EXCLUSIVE, 0o600);
  yield;
  const bytes = Buffer.from(text);
  fs.writeSync(fd, bytes, 0, bytes.length, null);
  yield;
  fs.fsyncSync(fd);
  yield pauseMs;
  fs.closeSync(fd);
  world.ends(temporary);
  yield;
  const mode = exists(fs, path) ? Number(fs.statSync(path, { bigint: true }).mode) & 0o777 : 0o644;
  fs.chownSync(temporary, 0, 0);
  yield;
  fs.chmodSync(temporary, mode);
  yield;
  fs.renameSync(temporary, path);
  yield;
}
