/**
 * Publishing a set of files as one revision:
 * announce → create and fill the revision → swap → links → sync → sweep.
 *
 * Writers in several processes need no lock, because they share no name. Each write creates a new revision and a new
 * pending link that announces it. The last writer to swap wins, and then aligns the links with what `..data` points to.
 * The pending link is created before the revision and lasts until the swap, so a revision to which neither a pending
 * link nor `..data` points is abandoned, and is removed.
 *
 * Everything is done relative to the open volume and the open revision (see `HeldDirectory`): a user who can write to
 * the volume can spoil a write, but not redirect it.
 */
import { isOnWindows } from '../core/ports/platform-path.js';
import { errnoOf } from '../core/errors/errno.js';
import { DATA_LINK, topOf } from '../fs/volume-layout.js';
import type { Write } from './calls.js';
import type { HeldDirectory } from './held-directory.js';
import { openDirectory } from './open-directory.js';
import { publishRevision } from './pending-revision.js';
import { wait, type Steps } from '../core/scheduling/steps.js';
import type { VolumeFiles } from './volume-files.js';
import { alignLinks, setLinks } from './volume-links.js';
import { holdsFiles, publishedRevision } from './volume-revision.js';
import { sweepRevisions } from './volume-sweep.js';
import { failureOf, Refusal, WriteError } from './write-error.js';

/** The result of a write to a volume. */
export interface VolumeWriteResult {
  /** Whether there is a new revision; false when the published one holds these very files already. */
  readonly changed: boolean;
  /** What `..data` points to now. */
  readonly revision: string;
}

/** There, a link has the type of its target, which does not exist yet when the link is made. */
const NO_LINKS =
  'Windows cannot publish a volume, because its links would be of the wrong type; use atomicWriteFile, or Linux (WSL, a container)';

/** Opens a volume (absolute) and does the work in it. Throws a `WriteError`. */
export function* inVolume<T>(
  path: string,
  { fs, durability, createDirectory }: Pick<Write, 'fs' | 'durability' | 'createDirectory'>,
  work: (volume: HeldDirectory) => Steps<T>,
): Steps<T> {
  const how = { fs, durability, createDirectory, isBlocking: false };
  const write: Write = { ...how, path, step: 'open-directory', published: false };
  try {
    if (isOnWindows()) throw new Refusal('ERR_WRITE_UNSUPPORTED', NO_LINKS);
    const volume = yield* openDirectory(path, write);
    return yield* volume.during(work(volume));
  } catch (error) {
    throw failureOf(write, error);
  }
}

/** Does the work in a volume, if there is one. */
export function* ifThere(work: Steps<void>): Steps<void> {
  try {
    yield* work;
  } catch (error) {
    const isMissing =
      error instanceof WriteError && error.step === 'open-directory' && errnoOf(error.cause) === 'ENOENT';
    if (!isMissing) throw error;
  }
}

/**
 * Publishes these files, unless they are published already.
 * @param name of the revision, if a new one is needed.
 * @param onReplaced is called with the revision that was published before.
 */
export function* writeVolume(
  volume: HeldDirectory,
  files: VolumeFiles,
  name: string,
  onReplaced: (revision: string) => void,
): Steps<VolumeWriteResult> {
  const { write } = volume;
  write.step = 'resolve';
  yield* refuseDirectories(volume, new Set([...files.keys()].map(topOf)));
  const current = yield* publishedRevision(volume);
  write.step = 'compare';
  const isCurrent = current !== undefined && (yield* holdsFiles(volume, current, files));
  if (!isCurrent) yield* publishRevision(volume, files, name);
  if (current !== undefined && !isCurrent) onReplaced(current);
  write.step = 'link';
  try {
    yield* alignLinks(volume);
  } catch (error) {
    throw failureOf(write, error);
  } finally {
    // Also of what is published already: the writer that did may have been killed, or its sync may have failed.
    yield* syncVolume(volume);
  }
  return { changed: !isCurrent, revision: isCurrent ? current : name };
}

/** Removes everything that was published: `..data` first, so that no reader finds a part. */
export function* clearVolume(volume: HeldDirectory): Steps<void> {
  const { write } = volume;
  write.step = 'remove';
  const stat = yield* wait(volume.lstat(DATA_LINK));
  const isDirectory = stat?.isDirectory() === true;
  if (!isDirectory) yield* volume.unlink(DATA_LINK);
  write.published = true;
  try {
    yield* setLinks(volume, []);
    // Another writer may have published meanwhile.
    yield* alignLinks(volume);
  } finally {
    // A power cut must not bring `..data` back once a part of its revision is gone.
    yield* syncVolume(volume);
    yield* sweepRevisions(volume);
  }
  if (isDirectory) throw new Refusal('ERR_WRITE_NOT_FILE', `its "${DATA_LINK}" is a directory; remove it`);
}

/** A file or a wrong link at the name of a key is replaced; a directory may hold what nobody wants to lose. */
function* refuseDirectories(volume: HeldDirectory, names: Iterable<string>): Steps<void> {
  for (const name of [DATA_LINK, ...names]) {
    const stat = yield* wait(volume.lstat(name));
    if (!stat?.isDirectory()) continue;
    volume.write.path += `/${name}`;
    throw new Refusal('ERR_WRITE_NOT_FILE', 'it is a directory, where a link has to be; remove it');
  }
}

/** If this fails, nothing may be removed: a power cut could bring back the `..data` that led there. */
export function* syncVolume(volume: HeldDirectory): Steps<void> {
  volume.write.step = 'sync-directory';
  yield* volume.sync();
  volume.write.step = 'remove';
}
