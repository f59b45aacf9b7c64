/** The system calls of kubelet's AtomicWriter, each done when its step is yielded. */
import fs from 'node:fs';
import { dirname, join } from 'node:path';

import { nodeFileSystem } from '../core/file-system.js';
import { pathForCall } from '../core/path-bytes.js';
import type { CheckedFile } from './volume-file.js';

/** One system call that changed the disk. It is done when the step is yielded. */
export interface VolumeStep {
  readonly name: 'mkdir' | 'chown' | 'chmod' | 'open' | 'write' | 'symlink' | 'rename' | 'unlink' | 'rmdir';
  /** Absolute path of what was changed; for `rename`, the new name. */
  readonly path: string;
}

export function isMissing(path: string): boolean {
  return fs.lstatSync(pathForCall(path), { throwIfNoEntry: false }) === undefined;
}

/** The errno code of a failed call. */
export function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
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

/** Go's `os.MkdirAll`: the missing ones, from the top. */
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
    fs.chmodSync(path, mode); // the umask had a say in `open`
    yield { name: 'chmod', path };
  }
}

/** Go's `os.RemoveAll`: contents first. Other programs may have created names that are not UTF-8. */
export function* removeAll(path: string): Generator<VolumeStep, void> {
  const calls = nodeFileSystem.sync;
  if (isMissing(path)) return;
  for (const name of calls.readdir(path).sort()) {
    const inner = join(path, name);
    if (calls.lstat(inner).isDirectory()) {
      yield* removeAll(inner);
    } else {
      calls.unlink(inner);
      yield { name: 'unlink', path: inner };
    }
  }
  calls.rmdir(path);
  yield { name: 'rmdir', path };
}

/** kubelet's masks for a volume that is mounted read-only (`pkg/volume/volume_linux.go`). */
const FILE_MASK = 0o440;
const DIRECTORY_MASK = 0o2550;

/** Sets the group of everything below `path`, then of `path` itself, as `fsGroup` does. */
export function* giveToGroup(path: string, gid: number): Generator<VolumeStep, void> {
  const stat = fs.lstatSync(pathForCall(path));
  if (stat.isDirectory()) {
    for (const name of nodeFileSystem.sync.readdir(path).sort()) yield* giveToGroup(join(path, name), gid);
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
