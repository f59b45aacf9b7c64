/** Sequences of system calls that several actors make. After each call, somebody else may act. */
import { constants } from 'node:fs';

import type { Process } from '../machine/machine.js';
import type { Steps } from '../world.js';

export type Fs = Process['fs'];

const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC;

/** As `open(…, O_TRUNC)`, `write` in this many pieces and `close`. @param pauseMs between two pieces. */
export function* write(fs: Fs, path: string, text: string, pieces = 1, pauseMs = 0, flags = CREATE): Steps {
  const fd = fs.openSync(path, flags, 0o644);
  yield;
  const bytes = Buffer.from(text);
  const size = Math.ceil(bytes.length / pieces);
  for (let at = 0; at < bytes.length; at += size) {
    if (at > 0 && pauseMs > 0) yield pauseMs;
    fs.writeSync(fd, bytes, at, Math.min(size, bytes.length - at), null);
    yield;
  }
  fs.closeSync(fd);
  yield;
}

/** As `mkdir -p`. */
export function* makeDirectories(fs: Fs, path: string): Steps {
  for (let at = path.indexOf('/', 1); ; at = path.indexOf('/', at + 1)) {
    const directory = at < 0 ? path : path.slice(0, at);
    if (!exists(fs, directory)) {
      fs.mkdirSync(directory, 0o755);
      yield;
    }
    if (at < 0) return;
  }
}

/** As `rm -r`. */
export function* removeAll(fs: Fs, path: string): Steps {
  const stat = fs.lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (!stat) return;
  if (!stat.isDirectory()) {
    fs.unlinkSync(path);
    yield;
    return;
  }
  for (const { name } of fs.readdirSync(path, { withFileTypes: true }))
    yield* removeAll(fs, `${path}/${name}`);
  fs.rmdirSync(path);
  yield;
}

export function exists(fs: Fs, path: string): boolean {
  return fs.lstatSync(path, { bigint: true, throwIfNoEntry: false }) !== undefined;
}
