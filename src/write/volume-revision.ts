/** One revision of a volume: a directory of files that does not change once it is published. */
import { errnoOf } from '../core/errno.js';
import { call, together, type Effects } from '../fs/effects.js';
import { hasAttributes } from './file-attributes.js';
import { holdsBytes } from './file-content.js';
import type { HeldDirectory } from './held-directory.js';
import { PendingFile, type Durability } from './pending-file.js';
import type { VolumeFile, VolumeFiles } from './volume-files.js';
import type { WriteError } from './write-error.js';
import { Refusal, WriteProgress } from './write-progress.js';

/** As in kubelet's volumes: every user may enter the directories, and the mode of each file says who may read it. */
const DIRECTORY_MODE = 0o755;

/** No other user can enter a directory before it is complete. */
const DIRECTORY_MODE_WHILE_PENDING = 0o700;

/** Creates a directory and opens it. */
export function* makePrivateDirectory(parent: HeldDirectory, name: string): Effects<HeldDirectory> {
  yield* call('mkdir', parent.at(name), DIRECTORY_MODE_WHILE_PENDING);
  try {
    return yield* parent.enter(name);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errnoOf(error) ?? '')) throw replaced(name);
    throw error;
  }
}

/** Why a revision is not published: somebody else moved it, or put something in its place. */
export function replaced(name: string): Refusal {
  return new Refusal(
    'ERR_WRITE_CONFLICT',
    `another process moved or replaced "${name}" while it was written; no other user should be able to write here`,
  );
}

/** Writes the files into a new directory, and opens it to readers. */
export function* fillDirectory(
  directory: HeldDirectory,
  files: VolumeFiles,
  durability: Durability,
  progress: WriteProgress,
): Effects<void> {
  const volume = progress.path;
  /** Files in directories below, by the name of the directory. */
  const below = new Map<string, Map<string, VolumeFile>>();
  const writing: (() => Effects<void>)[] = [];
  let failure: WriteError | undefined;
  for (const [key, file] of files) {
    const slash = key.indexOf('/');
    if (slash < 0) {
      writing.push(function* () {
        // Nobody needs the rest.
        if (failure) return;
        const own = new WriteProgress(`${volume}/${key}`);
        try {
          yield* writeFile(directory, key, file, durability, own);
        } catch (error) {
          failure ??= own.failure(error);
        }
      });
      continue;
    }
    const name = key.slice(0, slash);
    const inside = below.get(name) ?? new Map<string, VolumeFile>();
    below.set(name, inside.set(key.slice(slash + 1), file));
  }
  yield* together(writing);
  if (failure) throw failure;
  for (const [name, inside] of below) {
    progress.path = `${volume}/${name}`;
    progress.step = 'create-directory';
    const child = yield* makePrivateDirectory(directory, name);
    try {
      yield* fillDirectory(child, inside, durability, progress);
    } finally {
      yield* child.close();
    }
  }
  progress.path = volume;
  progress.step = 'chmod';
  yield* directory.setMode(DIRECTORY_MODE);
  progress.step = 'sync-directory';
  if (durability === 'full') yield* directory.sync();
}

function* writeFile(
  directory: HeldDirectory,
  name: string,
  { bytes, mode, owner }: VolumeFile,
  durability: Durability,
  progress: WriteProgress,
): Effects<void> {
  yield* directory.assertInPlace();
  // Nobody else can enter the directory, so the file can have its mode from the beginning.
  const file = yield* PendingFile.create(directory, () => name, progress, { mode: mode & 0o777 });
  try {
    // A new file belongs to the user of this process. If the directory does not, it was replaced, and its owner could
    // read what is written.
    if ((yield* file.owner()) !== directory.stat.uid) throw replaced(name);
    yield* file.write(bytes);
    yield* file.finish({ mode, owner, required: { mode: true, owner: true } }, durability);
  } catch (error) {
    yield* file.discard();
    throw error;
  }
}

/** Whether a directory holds exactly these files, with these modes and owners. */
export function* holdsFiles(directory: HeldDirectory, files: VolumeFiles): Effects<boolean> {
  try {
    return (yield* countEqual(directory, '', files)) === files.size;
  } catch (error) {
    // What was removed, or cannot be read (EAGAIN: somebody has a lease on it), is not equal.
    if (['ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES', 'EAGAIN'].includes(errnoOf(error) ?? '')) return false;
    throw error;
  }
}

/** How many of the files are there and equal; undefined when anything else is there. */
function* countEqual(
  directory: HeldDirectory,
  below: string,
  files: VolumeFiles,
): Effects<number | undefined> {
  let count = 0;
  for (const name of yield* call('readdir', directory.at('.'))) {
    const key = `${below}${name}`;
    const stat = yield* call('lstat', directory.at(name));
    if (stat.isDirectory()) {
      const inside = yield* countEqualIn(directory, name, `${key}/`, files);
      if (!inside) return undefined;
      count += inside;
      continue;
    }
    const wanted = files.get(key);
    if (!wanted || !stat.isFile() || !hasAttributes(wanted, stat)) return undefined;
    if (!(yield* holdsBytes(directory, name, stat, wanted.bytes))) return undefined;
    count += 1;
  }
  return count;
}

function* countEqualIn(
  parent: HeldDirectory,
  name: string,
  below: string,
  files: VolumeFiles,
): Effects<number | undefined> {
  const directory = yield* parent.enter(name);
  try {
    return yield* countEqual(directory, below, files);
  } finally {
    yield* directory.close();
  }
}
