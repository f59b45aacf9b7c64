/** One revision of a volume: a directory of files that never changes once it is published. */
import type { BigIntStats } from 'node:fs';
import { dirname } from 'node:path';

import { syncNames } from './directories.js';
import { errnoOf } from '../core/errors.js';
import { holdsBytes, readBytes } from './file-content.js';
import { PendingFile, type Durability, type Owner } from './pending-file.js';
import { call, type Effects } from '../fs/effects.js';
import type { WriteProgress } from './write-progress.js';

/** A file to be published. */
export interface RevisionFile {
  readonly bytes: Uint8Array;
  readonly mode: number;
  readonly owner: Owner | undefined;
}

/** Files by key; a key is a clean relative path. */
export type RevisionFiles = ReadonlyMap<string, RevisionFile>;

/** kubelet's mode for the directories of a volume: readers of any user enter them, the files say who may read. */
const DIRECTORY_MODE = 0o755;
const MODE_WHILE_PENDING = 0o700;

/** Makes the directory; nobody else enters it before it is opened by {@link fillRevision}. */
export function* makeRevision(path: string): Effects<void> {
  yield* call('mkdir', path, MODE_WHILE_PENDING);
}

/** Writes all files, and lets readers in. */
export function* fillRevision(
  revision: string,
  files: RevisionFiles,
  durability: Durability,
  progress: WriteProgress,
): Effects<void> {
  const volume = progress.path;
  /** Parents before their children. */
  const directories = new Set<string>();
  for (const [key, { bytes, mode, owner }] of files) {
    progress.path = `${volume}/${key}`;
    progress.step = 'create-directory';
    yield* makeParents(revision, key, directories);
    const path = `${revision}/${key}`;
    const file = yield* PendingFile.create(() => path, progress);
    try {
      yield* file.write(bytes);
      yield* file.finish({ mode, owner, required: { mode: true, owner: true } }, durability);
    } catch (error) {
      yield* file.discard();
      throw error;
    }
  }
  progress.path = volume;
  progress.step = 'chmod';
  yield* call('chmod', revision, DIRECTORY_MODE);
  if (durability !== 'full') return;
  progress.step = 'sync-directory';
  for (const directory of [...directories].reverse()) yield* syncNames(`${revision}/${directory}`);
  yield* syncNames(revision);
}

function* makeParents(revision: string, key: string, made: Set<string>): Effects<void> {
  const parent = dirname(key);
  if (parent === '.' || made.has(parent)) return;
  yield* makeParents(revision, parent, made);
  yield* call('mkdir', `${revision}/${parent}`, DIRECTORY_MODE);
  // The umask had a say in `mkdir`.
  yield* call('chmod', `${revision}/${parent}`, DIRECTORY_MODE);
  made.add(parent);
}

/** Whether a revision holds exactly these files, with these modes and owners. */
export function* holdsFiles(revision: string, files: RevisionFiles): Effects<boolean> {
  try {
    let found = 0;
    for (const { key, stat } of yield* listFiles(revision)) {
      const wanted = files.get(key);
      if (!wanted || !isAsWanted(stat, wanted)) return false;
      if (!(yield* holdsBytes(`${revision}/${key}`, stat, wanted.bytes))) return false;
      found += 1;
    }
    return found === files.size;
  } catch (error) {
    const errno = errnoOf(error);
    // What is not there, or cannot be read, cannot be what is wanted.
    if (errno === 'ENOENT' || errno === 'ENOTDIR' || errno === 'EACCES') return false;
    throw error;
  }
}

function isAsWanted(stat: BigIntStats, { mode, owner }: RevisionFile): boolean {
  if (!stat.isFile() || (stat.mode & 0o7777n) !== BigInt(mode)) return false;
  return !owner || (stat.uid === BigInt(owner.uid) && stat.gid === BigInt(owner.gid));
}

/** The contents of all files of a revision. */
export function* readFiles(revision: string): Effects<Map<string, Buffer>> {
  const files = new Map<string, Buffer>();
  for (const { key, stat } of yield* listFiles(revision)) {
    if (stat.isFile()) files.set(key, yield* readBytes(`${revision}/${key}`));
  }
  return files;
}

/** All that is in a revision except directories, sorted, so that the order does not depend on the file system. */
function* listFiles(revision: string, below = ''): Effects<{ key: string; stat: BigIntStats }[]> {
  const found: { key: string; stat: BigIntStats }[] = [];
  for (const name of (yield* call('readdir', `${revision}/${below}`)).sort()) {
    const key = `${below}${name}`;
    const stat = yield* call('lstat', `${revision}/${key}`);
    if (stat.isDirectory()) found.push(...(yield* listFiles(revision, `${key}/`)));
    else found.push({ key, stat });
  }
  return found;
}
