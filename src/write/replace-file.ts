/**
 * Replacing a file, written once for the asynchronous and the synchronous function:
 * open the directory → temporary file → write → owner, mode → fsync → close → rename → fsync of the directory → sweep.
 */
import { isEqual } from './calls.js';
import { openDestination, type Destination } from './destination.js';
import { attributesFor, hasAttributes } from './file-attributes.js';
import { PendingFile, type Waiting } from './pending-file.js';
import type { Steps } from '../core/steps.js';
import { isSweepDue, sweepFiles } from './sweep.js';
import { temporaryName } from './temporary-name.js';
import { WriteProgress } from './write-error.js';
import type { ReplaceSettings } from './write-options.js';
import type { RunningWrite } from './write-queue.js';
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

/** How the asynchronous and the synchronous function differ. */
interface Execution {
  /** Undefined in synchronous work. */
  readonly waiting?: Waiting & { readonly turn: RunningWrite };
  /** Runs immediately before the rename. */
  readonly beforeRename?: () => void;
}

/** One write to a destination that is open. */
interface Replacement extends Execution {
  readonly destination: Destination;
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
    return yield* replace({ ...execution, destination, settings, progress }, data);
  } catch (error) {
    const signal = execution.waiting?.signal;
    if (signal?.aborted && error === signal.reason && progress.published === false) throw error;
    throw progress.failure(error);
  } finally {
    if (destination) yield* destination.directory.during(sweep(destination, settings));
  }
}

function* replace(write: Replacement, data: Uint8Array | WriteSource): Steps<AtomicWriteResult> {
  const { destination, settings, progress, waiting } = write;
  const { path, directory, existing } = destination;
  if (settings.ifChanged) {
    if (data instanceof WriteSource) data = yield* collect(write, data);
    progress.step = 'compare';
    if (yield* isUnchanged(write, data)) return { path, written: false, bytes: data.byteLength };
  }
  waiting?.signal?.throwIfAborted();

  const attributes = attributesFor(settings, existing, directory.stat);
  const file = new PendingFile(directory, temporaryName('file'), progress);
  yield* file.create();
  let written = false;
  try {
    if (data instanceof WriteSource) yield* copy(write, data, file);
    else yield* file.write(data);
    yield* file.finish(attributes, settings.durability);
    written = yield* publish(write, file);
  } finally {
    if (!progress.published) yield* abandon(write, file);
  }
  return { path, written, bytes: file.written };
}

function* isUnchanged({ destination, settings }: Replacement, bytes: Uint8Array): Steps<boolean> {
  const { existing, directory, name } = destination;
  if (!existing || !hasAttributes(settings, existing)) return false;
  return yield* isEqual(directory.holds(name, existing, bytes));
}

function* copy(write: Replacement, source: WriteSource, file: PendingFile): Steps<void> {
  for (;;) {
    const chunk = yield* nextOf(write, source);
    if (!chunk) return;
    yield* file.write(chunk);
    yield* write.destination.directory.pause();
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
  const { destination, settings, progress, waiting } = write;
  const { directory, name } = destination;
  const turn = waiting?.turn;
  progress.step = 'rename';
  yield* directory.assertInPlace();
  waiting?.signal?.throwIfAborted();
  if (turn?.isOvertaken) return false;
  progress.isRenaming = true;
  write.beforeRename?.();
  if (turn) turn.renaming = directory.at(file.name);
  try {
    yield* file.renameTo(name, waiting);
  } catch (error) {
    // A synchronous write has removed the file meanwhile.
    if (turn?.isOvertaken) return false;
    throw error;
  } finally {
    if (turn) turn.renaming = undefined;
  }
  progress.published = true;
  progress.step = 'sync-directory';
  if (settings.durability === 'full') yield* directory.sync();
  // On any other file system, the write has waited for the thread pool.
  if (directory.place === 'memory') yield* directory.pause();
  return true;
}

/**
 * Removes the file of a write that failed. A rename that was reported as failed may have been carried out by a server.
 * If the file has its inode number at its destination, it was (`renameTo` checks that). If the file can still be removed
 * here, it was not. Otherwise it is not known, except on a local file system: inode numbers may change with each lookup,
 * as on some FUSE file systems, and lookups may be cached.
 */
function* abandon({ destination, progress }: Replacement, file: PendingFile): Steps<void> {
  const isRemoved = yield* file.discard();
  const isKnown = isRemoved || !progress.isRenaming || destination.directory.isLocal;
  if (!isKnown) progress.published = null;
}

/** After a failed write, too: what killed writers left may take the space that it needs. */
function* sweep({ directory }: Destination, settings: ReplaceSettings): Steps<void> {
  if (settings.sweep && isSweepDue(directory)) yield* sweepFiles(directory);
}
