/** Sequences of system calls that several actors make. After each call, somebody else may act. */
import { constants } from 'node:fs';
import { basename, dirname } from 'node:path';

import type { Process } from '../machine/machine.js';
import type { Steps } from '../world.js';

export type Fs = Process['fs'];

export const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC;

/** How often somebody asks what time it is, ms. */
const CLOCK_MS = 20;

/** As `afterLink`, for every link on the way: those that lead to a directory, too. */
function* afterLinks(fs: Fs, path: string): Steps {
  for (let at = path; at !== dirname(at); at = dirname(at)) yield* afterLink(fs, at);
}

/** Waits while a clock that was set back makes a write look older than the link that it comes after. */
function* afterLink(fs: Fs, path: string): Steps {
  const [directory, name] = [dirname(path), basename(path)];
  const inode = fs.inodeAt(directory)?.entries.get(name)?.inode;
  if (inode?.kind !== 'link' || inode.storage.stamp() >= inode.ctimeNs) return;
  while (inode.storage.stamp() <= inode.ctimeNs) yield CLOCK_MS;
}

/**
 * As `open(…, O_TRUNC)`, `write` in this many pieces and `close`.
 * @param pauseMs between two pieces.
 * @param link that leads to the file, perhaps through others.
 */
export function* write(
  fs: Fs,
  path: string,
  text: string,
  pieces = 1,
  pauseMs = 0,
  flags = CREATE,
  link = path,
): Steps {
  const fd = fs.openSync(path, flags, 0o644);
  yield;
  const bytes = Buffer.from(text);
  const size = Math.ceil(bytes.length / pieces);
  for (let at = 0; at < bytes.length; at += size) {
    if (at > 0 && pauseMs > 0) yield pauseMs;
    yield* afterLinks(fs, link);
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
