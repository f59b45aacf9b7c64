/**
 * Replacing a file, written once for the asynchronous and the synchronous function:
 * open the directory → temporary file → write → owner, mode → fsync → close → rename → fsync of the directory → sweep.
 */
import type { BigIntStats } from 'node:fs';

import { basename, dirname, told } from '../core/ports/platform-path.js';
import { MAX_LINKS } from '../core/ports/file-system.js';
import { attempt, isEqual, type Write } from './calls.js';
import { attributesFor, hasAttributes, haveSameAttributes } from './file-attributes.js';
import type { HeldDirectory } from './held-directory.js';
import { openDirectory, targetOf } from './open-directory.js';
import { PendingFile, type Waiting } from './pending-file.js';
import { nextSlice, wait, type Steps } from '../core/scheduling/steps.js';
import { isSweepDue, sweepFiles, temporaryName } from './sweep.js';
import { mayReplace } from './trust.js';
import { failureOf, Refusal } from './write-error.js';
import type { ReplaceSettings } from './write-options.js';
import type { Publication } from './write-queue.js';
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
  /** Undefined in synchronous work. */
  readonly waiting?: Waiting;
  /** What synchronous writes learn of an asynchronous one. */
  readonly publication?: Publication;
  /** The asynchronous writes that must not publish after a synchronous one. */
  readonly earlier?: readonly Publication[];
}

/** One write of a file. */
type FileWrite = Write & ReplaceSettings & Execution;

/** Where a write goes: a name in a directory that is held open. */
interface Destination {
  /** Absolute, with the links at its end followed, if `symlink` says so. */
  readonly path: string;
  readonly name: string;
  readonly directory: HeldDirectory;
  /** The file to replace. */
  readonly existing: BigIntStats | undefined;
}

/** Replaces `path` (absolute) with the data. Throws a `WriteError`, or the signal's reason. */
export function* replaceFile(
  path: string,
  data: Uint8Array | WriteSource,
  settings: ReplaceSettings,
  execution: Execution,
): Steps<AtomicWriteResult> {
  const isBlocking = execution.waiting === undefined;
  const write: FileWrite = {
    ...settings,
    ...execution,
    isBlocking,
    path,
    step: 'open-directory',
    published: false,
  };
  let destination: Destination | undefined;
  try {
    destination = yield* openDestination(write);
    return yield* replace(write, destination, data);
  } catch (error) {
    const signal = write.waiting?.signal;
    if (signal?.aborted && error === signal.reason && write.published === false) throw error;
    throw failureOf(write, error);
  } finally {
    if (destination) {
      const { directory } = destination;
      // After a failed write, too: what killed writers left may take the space that it needs.
      if (write.sweep && isSweepDue(directory)) yield* sweepFiles(directory);
      yield* wait(directory.close());
    }
  }
}

function* replace(
  write: FileWrite,
  destination: Destination,
  data: Uint8Array | WriteSource,
): Steps<AtomicWriteResult> {
  const { path, name, directory, existing } = destination;
  let same: BigIntStats | undefined;
  // What an earlier write is about to publish would replace what is there now.
  if (write.ifChanged && !write.earlier?.length) {
    if (data instanceof WriteSource) data = yield* collect(write, data);
    write.step = 'compare';
    if (existing && (yield* isEqual(directory.holds(name, existing, data)))) same = existing;
    if (same && hasAttributes(write, same)) {
      // The writer of that file may have been killed before it did, or its sync may have failed.
      yield* syncNames(write, directory);
      return { path: told(path), written: false, bytes: data.byteLength };
    }
  }
  write.waiting?.signal?.throwIfAborted();

  const attributes = attributesFor(write, existing, directory.stat);
  const file = yield* PendingFile.create(directory, temporaryName('file'));
  try {
    if (data instanceof WriteSource) yield* copy(write, data, file);
    else yield* file.write(data);
    const bytes = yield* file.finish(attributes);
    // Windows, and mounts that show one mode or owner for every file: with another one it would look the same.
    if (same && haveSameAttributes(same, yield* wait(directory.lstat(file.name))))
      return { path: told(path), written: false, bytes };
    return { path: told(path), written: yield* publish(write, destination, file), bytes };
  } finally {
    if (!write.published) yield* abandon(directory, file);
  }
}

function* copy(write: FileWrite, source: WriteSource, file: PendingFile): Steps<void> {
  for (;;) {
    const chunk = yield* nextOf(write, source);
    if (!chunk) return;
    yield* file.write(chunk);
    if (!write.isBlocking) yield* nextSlice();
  }
}

function* collect(write: FileWrite, source: WriteSource): Steps<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for (;;) {
    const chunk = yield* nextOf(write, source);
    if (!chunk) return Buffer.concat(chunks);
    // The source may reuse its buffer.
    chunks.push(Uint8Array.from(chunk));
  }
}

function* nextOf(write: FileWrite, source: WriteSource): Steps<Uint8Array | undefined> {
  const signal = write.waiting?.signal;
  write.step = 'read-source';
  signal?.throwIfAborted();
  return yield* source.next(signal);
}

/** Renames the finished file, unless a synchronous write has published meanwhile. Returns whether it was renamed. */
function* publish(write: FileWrite, { directory, name }: Destination, file: PendingFile): Steps<boolean> {
  const { waiting, publication, earlier = [] } = write;
  write.step = 'rename';
  yield* directory.assertInPlace();
  waiting?.signal?.throwIfAborted();
  if (publication?.isOvertaken) return false;
  if (publication) publication.file = directory.at(file.name);
  // The thread pool may be about to rename that file, which cannot be called off.
  for (const { file: unpublished } of earlier) {
    if (unpublished !== undefined) yield* attempt(() => directory.calls.unlink(unpublished), ['ENOENT']);
  }
  write.published = null;
  try {
    yield* file.renameTo(name, waiting);
  } catch (error) {
    if (publication?.isOvertaken) return false;
    throw error;
  }
  write.published = true;
  for (const other of earlier) other.isOvertaken = true;
  yield* syncNames(write, directory);
  yield* directory.pause();
  return true;
}

function* syncNames(write: FileWrite, directory: HeldDirectory): Steps<void> {
  write.step = 'sync-directory';
  yield* directory.sync();
}

/**
 * Removes the file of a write that failed. A rename that was reported as failed may have been carried out by a server.
 * If the file has its inode number at its destination, it was (`renameTo` checks that). If the file can still be
 * removed here, it was not. Otherwise it is not known, except on a local file system: inode numbers may change with
 * each lookup, as on some FUSE file systems, and lookups may be cached.
 */
function* abandon(directory: HeldDirectory, file: PendingFile): Steps<void> {
  const isRemoved = yield* file.discard();
  if (isRemoved || directory.isLocal) directory.write.published = false;
}

/** Follows the links at the end of a path, and opens the directory of the file. The caller closes it. */
function* openDestination(write: FileWrite): Steps<Destination> {
  let { path } = write;
  for (let links = 0; ; links += 1) {
    if (path.endsWith('/')) {
      throw new Refusal('ERR_WRITE_NOT_FILE', 'a path that ends with a slash is that of a directory');
    }
    write.step = 'open-directory';
    const directory = yield* openDirectory(dirname(path), write);
    try {
      const name = basename(path);
      write.step = 'resolve';
      const stat = yield* wait(directory.lstat(name));
      const isLink = stat?.isSymbolicLink() === true;
      if (!isLink || write.symlink === 'replace') {
        if (!isLink && stat) yield* assertReplaceable(name, stat, directory);
        return { path, name, directory, existing: isLink ? undefined : stat };
      }
      if (write.symlink === 'error') throw unfollowed('it is a symbolic link, and symlink is "error"');
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
function* assertReplaceable(name: string, stat: BigIntStats, directory: HeldDirectory): Steps<void> {
  if (!stat.isFile()) {
    const what = stat.isDirectory() ? 'it is a directory' : 'it is a device, a pipe or a socket';
    throw new Refusal('ERR_WRITE_NOT_FILE', what);
  }
  if (!mayReplace(stat, directory.stat) && !(yield* directory.isOurs(name, stat))) {
    const what = 'it belongs to another user, in a directory where others can create files';
    throw new Refusal('ERR_WRITE_UNTRUSTED', `${what}; remove it, or write to a directory of your own`);
  }
}
