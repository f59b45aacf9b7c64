/** The system calls of kubelet's AtomicWriter, as steps. Each call has been made when its step is yielded. */
import fs from 'node:fs';
import { dirname, join } from 'node:path';

import { pathFromBytes } from '../core/ports/path-bytes.js';
import { pathForCall } from '../core/ports/platform-path.js';
import type { CheckedFile } from './volume-file.js';

/** One system call that changed the disk, made before the step is yielded. */
export interface VolumeStep {
  readonly name: 'mkdir' | 'chown' | 'chmod' | 'open' | 'write' | 'symlink' | 'rename' | 'unlink' | 'rmdir';
  /** The absolute path that was changed; for `rename`, the new name. */
  readonly path: string;
}

export function isMissing(path: string): boolean {
  return fs.lstatSync(pathForCall(path), { throwIfNoEntry: false }) === undefined;
}

export function symlink(target: string, path: string): VolumeStep {
  fs.symlinkSync(target, path);
  return { name: 'symlink', path };
}

function unlink(path: string): VolumeStep {
  fs.unlinkSync(path);
  return { name: 'unlink', path };
}

export function* unlinkIfAny(path: string): Generator<VolumeStep, void> {
  if (!isMissing(path)) yield unlink(path);
}

/** Go's `os.MkdirAll`: creates the missing directories, from the top. */
export function* makeDirectories(path: string): Generator<VolumeStep, void> {
  if (fs.existsSync(path)) return;
  yield* makeDirectories(dirname(path));
  fs.mkdirSync(path, 0o777);
  yield { name: 'mkdir', path };
}

export function* writeFiles(revision: string, entries: readonly CheckedFile[]): Generator<VolumeStep, void> {
  for (const { key, data, mode } of entries) {
    const path = join(revision, key);
    yield* makeDirectories(dirname(path));
    const fd = fs.openSync(path, 'w', mode);
    try {
      yield { name: 'open', path };
      fs.writeFileSync(fd, data);
      yield { name: 'write', path };
    } finally {
      fs.closeSync(fd);
    }
    fs.chmodSync(path, mode); // `open` applied the umask
    yield { name: 'chmod', path };
  }
}

/** Go's `os.RemoveAll`: contents first. Other programs may have created names that are not UTF-8. */
export function* removeAll(path: string): Generator<VolumeStep, void> {
  if (isMissing(path)) return;
  for (const name of namesIn(path)) {
    const inner = join(path, name);
    if (fs.lstatSync(pathForCall(inner)).isDirectory()) {
      yield* removeAll(inner);
    } else {
      fs.unlinkSync(pathForCall(inner));
      yield { name: 'unlink', path: inner };
    }
  }
  fs.rmdirSync(pathForCall(path));
  yield { name: 'rmdir', path };
}

/** The names in a directory, sorted; see path-bytes.ts. */
function namesIn(path: string): string[] {
  return fs.readdirSync(pathForCall(path), 'buffer').map(pathFromBytes).sort();
}

/** kubelet's masks for a volume that is mounted read-only (`pkg/volume/volume_linux.go`). */
const FILE_MASK = 0o440;
const DIRECTORY_MASK = 0o2550;

/** Sets the group of everything below `path`, then of `path` itself, as `fsGroup` does. */
export function* giveToGroup(path: string, gid: number): Generator<VolumeStep, void> {
  const stat = fs.lstatSync(pathForCall(path));
  if (stat.isDirectory()) {
    for (const name of namesIn(path)) yield* giveToGroup(join(path, name), gid);
  }
  yield* changeGroup(path, gid);
}

/** Only the owner of a link is changed. */
export function* changeGroup(path: string, gid: number): Generator<VolumeStep, void> {
  const stat = fs.lstatSync(pathForCall(path));
  fs.lchownSync(pathForCall(path), -1, gid);
  yield { name: 'chown', path };
  if (stat.isSymbolicLink()) return;
  const mask = stat.isDirectory() ? DIRECTORY_MASK : FILE_MASK;
  fs.chmodSync(pathForCall(path), (stat.mode & 0o7777) | mask);
  yield { name: 'chmod', path };
}
