/**
 * Replacing a file, written once for the asynchronous and the synchronous function:
 * open the directory → temporary file → write → owner, mode → fsync → close → rename → fsync of the directory → sweep.
 */
import type { BigIntStats } from 'node:fs';
import { basename, dirname } from 'node:path';

import { MAX_LINKS } from '../core/file-system.js';
import { Place, type Call, type Publication } from './call-order.js';
import { isEqual } from './calls.js';
import { attributesFor, hasAttributes } from './file-attributes.js';
import type { HeldDirectory } from './held-directory.js';
import { openDirectory, targetOf } from './open-directory.js';
import { PendingFile, type Waiting } from './pending-file.js';
import { wait, type Steps } from '../core/steps.js';
import { isSweepDue, removeUnfinished, sweepFiles } from './sweep.js';
import { temporaryName } from './temporary-name.js';
import { mayReplace } from './trust.js';
import { Refusal, WriteProgress } from './write-error.js';
import type { ReplaceSettings } from './write-options.js';
import { WriteSource } from './write-source.js';

/** The result of an atomic write. */
export interface AtomicWriteResult {
  /** The file that holds the data: absolute, with the links at its end followed if `symlink` says so. */
  readonly path: string;
  /** False if nothing was written: the file was as wanted (`ifChanged`), or a later synchronous write came first. */
  readonly written: boolean;
  /** The size of the data, bytes. */
  readonly bytes: number;
}

interface Execution {
  readonly call: Call;
  /** Undefined in synchronous work. */
  readonly waiting?: Waiting;
}

/** Where a write goes: a name in a directory that is held open. */
interface Destination {
  /** Absolute, with the links at its end followed, if `symlink` says so. */
  readonly path: string;
  readonly name: string;
  readonly directory: HeldDirectory;
  /** The file to replace. */
  readonly existing: BigIntStats | undefined;
}

/** One write to a destination that is open. */
interface Replacement extends Destination, Execution {
  readonly place: Place;
  readonly settings: ReplaceSettings;
  readonly progress: WriteProgress;
}

/** Replaces `path` (absolute) with the data. Throws a `WriteError`, or the signal's reason. */
export function* replaceFile(
  path: string,
  data: Uint8Array | WriteSource,
  settings: ReplaceSettings,
  execution: Execution,
): Steps<AtomicWriteResult> {
  const progress = new WriteProgress(path);
  let destination: Destination | undefined;
  try {
    destination = yield* openDestination(path, settings, execution.waiting === undefined, progress);
    const place = new Place(destination.path, destination.directory, destination.name);
    const write = { ...destination, ...execution, place, settings, progress };
    return yield* execution.waiting ? replace(write, data) : replaceNow(write, data);
  } catch (error) {
    const signal = execution.waiting?.signal;
    if (signal?.aborted && error === signal.reason && progress.published === false) throw error;
    throw progress.failure(error);
  } finally {
    if (destination) {
      const { directory } = destination;
      // After a failed write, too: what killed writers left may take the space that it needs.
      if (settings.sweep && isSweepDue(directory)) yield* sweepFiles(directory);
      yield* wait(directory.close());
    }
  }
}

/** A synchronous write cannot wait for one that is just publishing, so it keeps that from publishing later. */
function* replaceNow(write: Replacement, data: Uint8Array | WriteSource): Steps<AtomicWriteResult> {
  const { place, directory, progress } = write;
  const aside = yield* place.putAside();
  let result: AtomicWriteResult | undefined;
  try {
    return (result = yield* replace(write, data));
  } finally {
    if (aside && (result || progress.published)) yield* removeUnfinished(directory, aside.name);
    else if (aside) yield* place.putBack(aside);
  }
}

function* replace(write: Replacement, data: Uint8Array | WriteSource): Steps<AtomicWriteResult> {
  const { path, directory, existing, settings, progress, waiting } = write;
  if (settings.ifChanged) {
    if (data instanceof WriteSource) data = yield* collect(write, data);
    progress.step = 'compare';
    if (yield* isUnchanged(write, data)) return { path, written: false, bytes: data.byteLength };
  }
  waiting?.signal?.throwIfAborted();

  const attributes = attributesFor(settings, existing, directory.stat);
  const file = yield* PendingFile.create(directory, temporaryName('file'), progress);
  try {
    if (data instanceof WriteSource) yield* copy(write, data, file);
    else yield* file.write(data);
    const bytes = yield* file.finish(attributes, settings.durability);
    return { path, written: yield* publish(write, file), bytes };
  } finally {
    if (!progress.published) yield* abandon(write, file);
  }
}

function* isUnchanged(write: Replacement, bytes: Uint8Array): Steps<boolean> {
  const { existing, directory, name, settings, place, call } = write;
  if (!existing || !hasAttributes(settings, existing)) return false;
  return yield* alone(write, function* () {
    const isSame = yield* isEqual(directory.holds(name, existing, bytes));
    if (isSame) call.hasPublished(place);
    return isSame;
  });
}

/** Does the work while no other write publishes at the place. */
function* alone<T>({ place, waiting }: Replacement, work: (publication?: Publication) => Steps<T>): Steps<T> {
  return yield* waiting ? place.alone(waiting.signal, work) : work();
}

function* copy(write: Replacement, source: WriteSource, file: PendingFile): Steps<void> {
  for (;;) {
    const chunk = yield* nextOf(write, source);
    if (!chunk) return;
    yield* file.write(chunk);
    yield* write.directory.pause();
  }
}

function* collect(write: Replacement, source: WriteSource): Steps<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for (;;) {
    const chunk = yield* nextOf(write, source);
    if (!chunk) return Buffer.concat(chunks);
    // The source may reuse its buffer.
    chunks.push(Uint8Array.from(chunk));
  }
}

function* nextOf({ progress, waiting }: Replacement, source: WriteSource): Steps<Uint8Array | undefined> {
  progress.step = 'read-source';
  waiting?.signal?.throwIfAborted();
  return yield* source.next(waiting?.signal);
}

/** Renames the finished file, unless a newer write has completed meanwhile. Returns whether it was renamed. */
function* publish(write: Replacement, file: PendingFile): Steps<boolean> {
  const { directory, settings, progress } = write;
  progress.step = 'rename';
  yield* directory.assertInPlace();
  if (!(yield* alone(write, (publication) => rename(write, file, publication)))) return false;
  progress.step = 'sync-directory';
  if (settings.durability === 'full') yield* directory.sync();
  // On any other file system, the write has waited for the thread pool.
  if (directory.place === 'memory') yield* directory.pause();
  return true;
}

function* rename(write: Replacement, file: PendingFile, publication?: Publication): Steps<boolean> {
  const { directory, name, progress, waiting, place, call } = write;
  waiting?.signal?.throwIfAborted();
  if (publication && call.isOvertaken(place)) return false;
  progress.isRenaming = true;
  if (publication) publication.file = directory.at(file.name);
  for (let isRenamed = false; !isRenamed;) {
    try {
      yield* file.renameTo(name, waiting);
      isRenamed = true;
    } catch (error) {
      // A synchronous write has put the file aside meanwhile, and has failed if it is back.
      if (publication && call.isOvertaken(place)) return false;
      if (!publication?.isBack) throw error;
      publication.isBack = false;
    }
  }
  progress.published = true;
  call.hasPublished(place);
  return true;
}

/**
 * Removes the file of a write that failed. A rename that was reported as failed may have been carried out by a server.
 * If the file has its inode number at its destination, it was (`renameTo` checks that). If the file can still be removed
 * here, it was not. Otherwise it is not known, except on a local file system: inode numbers may change with each lookup,
 * as on some FUSE file systems, and lookups may be cached.
 */
function* abandon({ directory, progress }: Replacement, file: PendingFile): Steps<void> {
  const isRemoved = yield* file.discard();
  const isKnown = isRemoved || !progress.isRenaming || directory.isLocal;
  if (!isKnown) progress.published = null;
}

/** Follows the links at the end of a path, and opens the directory of the file. The caller closes it. */
export function* openDestination(
  path: string,
  settings: ReplaceSettings,
  isBlocking: boolean,
  progress: WriteProgress,
): Steps<Destination> {
  const { fs, durability, createDirectory, symlink } = settings;
  const isDurable = durability === 'full';
  const opening = { fs, isBlocking, isReadable: isDurable, isDurable, creates: createDirectory };
  for (let links = 0; ; links += 1) {
    if (path.endsWith('/')) {
      throw new Refusal('ERR_WRITE_NOT_FILE', 'a path that ends with a slash is that of a directory');
    }
    progress.step = 'open-directory';
    const directory = yield* openDirectory(dirname(path), opening, progress);
    try {
      const name = basename(path);
      progress.step = 'resolve';
      const stat = yield* wait(directory.lstat(name));
      const isLink = stat?.isSymbolicLink() === true;
      if (!isLink || symlink === 'replace') {
        if (!isLink && stat) assertReplaceable(stat, directory.stat);
        return { path, name, directory, existing: isLink ? undefined : stat };
      }
      if (symlink === 'error') throw unfollowed('it is a symbolic link, and symlink is "error"');
      if (links === MAX_LINKS) throw unfollowed(`it leads through more than ${MAX_LINKS} symbolic links`);
      path = yield* targetOf(stat, path, directory);
    } catch (error) {
      yield* wait(directory.close());
      throw error;
    }
    yield* wait(directory.close());
  }
}

function unfollowed(what: string): Refusal {
  return new Refusal('ERR_WRITE_NOT_FILE', what);
}

/** Refuses anything but a file, and a file that another user may have put there. */
function assertReplaceable(stat: BigIntStats, directory: BigIntStats): void {
  if (!stat.isFile()) {
    const what = stat.isDirectory() ? 'it is a directory' : 'it is a device, a pipe or a socket';
    throw new Refusal('ERR_WRITE_NOT_FILE', what);
  }
  if (!mayReplace(stat, directory)) {
    const what = 'it belongs to another user, in a directory where others can create files';
    throw new Refusal('ERR_WRITE_UNTRUSTED', `${what}; remove it, or write to a directory of your own`);
  }
}
