/**
 * The usual replacement in one function: one chunk of data for a file on a local disk that keeps its owner and mode, or is
 * new. It makes the calls of `replaceFile`, in the same order. In an idle process all code is cold, and entering a
 * function costs about a microsecond: the layers of `replaceFile`, which are there for every other case, took as long as
 * two trips through the thread pool.
 *
 * | something unusual shows       | then                                                                          |
 * |-------------------------------|-------------------------------------------------------------------------------|
 * | before the file is created    | nothing has happened: `replaceFile` does it all, or says why it cannot         |
 * | from then on                  | the functions of `replaceFile` take over for that step, and for every failure  |
 */
import type { BigIntStats } from 'node:fs';

import { errnoOf, withErrno } from '../core/errno.js';
import type { FileSystemCalls } from '../core/file-system.js';
import { runAsync, type Effects } from '../fs/effects.js';
import { SMALL_BYTES, type SynchronousCalls } from '../fs/locality.js';
import { attributesFor, isAsWanted, modeFor } from './file-attributes.js';
import { areEntriesByDescriptor, HeldDirectory } from './held-directory.js';
import { creationFlags, MAX_WRITE_BYTES, MODE_WHILE_PENDING, PendingFile } from './pending-file.js';
import { recoverRename } from './rename-file.js';
import {
  abandon,
  failureOf,
  type AtomicWriteResult,
  type ReplaceSettings,
  type Waiting,
} from './replace-file.js';
import { isSweepDue, sweepFiles } from './sweep-files.js';
import { removeUnfinished, temporaryName } from './temporary-name.js';
import { isOurs, mayReplace } from './trust.js';
import { WriteProgress } from './write-progress.js';

/** What a direct write needs. */
interface DirectWrite {
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly settings: ReplaceSettings;
  readonly calls: SynchronousCalls;
  readonly waiting: Waiting;
  /** Replaces the file in every other case. */
  readonly otherwise: () => Promise<AtomicWriteResult>;
}

/** Replaces the file. Rejects with a `WriteError`, or the signal's reason. */
export function writeDirectly(write: DirectWrite): Promise<AtomicWriteResult> {
  const { path, bytes, settings, calls } = write;
  const slash = path.lastIndexOf('/');
  const isUsual = !settings.ifChanged && bytes.byteLength <= MAX_WRITE_BYTES && slash < path.length - 1;
  const lookups = isUsual && areEntriesByDescriptor(calls.fs) ? calls.approachNow() : undefined;
  if (!lookups) return write.otherwise();
  let directory: HeldDirectory;
  try {
    directory = HeldDirectory.openNow(path.slice(0, slash) || '/', lookups, settings.durability === 'full');
  } catch {
    return write.otherwise();
  }
  const to = directory.at(path.slice(slash + 1));
  const existing = findFile(to, directory, lookups, calls);
  if (existing !== 'unusual') return writeIn(directory, to, existing, lookups, write);
  directory.closeNow(lookups);
  return write.otherwise();
}

/** The file to replace, if there is one. */
function findFile(
  path: string,
  directory: HeldDirectory,
  lookups: FileSystemCalls,
  calls: SynchronousCalls,
): BigIntStats | undefined | 'unusual' {
  try {
    const existing = lstatIfExists(path, lookups);
    // What has another `st_dev` than its directory is a mount point, which cannot be replaced.
    if (!calls.enterNow((existing ?? directory.stat).dev)) return 'unusual';
    if (!existing) return existing;
    const isUsual = existing.isFile() && (isOurs(existing) || mayReplace(existing, directory.stat));
    return isUsual ? existing : 'unusual';
  } catch {
    // `replaceFile` gives the reason.
    return 'unusual';
  }
}

function lstatIfExists(path: string, lookups: FileSystemCalls): BigIntStats | undefined {
  try {
    return lookups.lstat(path);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Replaces the file in this directory, which it closes. */
async function writeIn(
  directory: HeldDirectory,
  to: string,
  existing: BigIntStats | undefined,
  lookups: FileSystemCalls,
  { path, bytes, settings, calls, waiting, otherwise }: DirectWrite,
): Promise<AtomicWriteResult> {
  const { fs } = calls;
  const { durability } = settings;
  const size = bytes.byteLength;
  const mode = modeFor(settings.mode, existing);
  // Undefined on a disk, where a change may have to wait for the journal.
  const now = calls.isInMemory ? lookups : undefined;
  // The call that writes also syncs the file, which saves a trip: if nothing is changed after it.
  const isSynced = !now && durability !== 'none' && size > 0 && mode === MODE_WHILE_PENDING;
  const progress = new WriteProgress(path);
  const temporary = directory.at(temporaryName('file'));
  let file: PendingFile | undefined;
  try {
    progress.step = 'create';
    const flags = creationFlags(isSynced);
    let fd: number;
    try {
      fd = now
        ? now.open(temporary, flags, MODE_WHILE_PENDING)
        : await fs.open(temporary, flags, MODE_WHILE_PENDING);
    } catch (error) {
      if (errnoOf(error) === 'EEXIST') return await otherwise();
      await run(removeUnfinished(temporary), calls);
      throw error;
    }
    file = new PendingFile(temporary, fd, progress, isSynced);

    progress.step = 'write';
    if (size > 0) {
      const isSmall = now && size <= SMALL_BYTES;
      const count = isSmall ? now.write(fd, bytes, 0, size) : await fs.write(fd, bytes, 0, size);
      file.addWritten(count);
      if (count < size) await run(file.write(bytes.subarray(count)), calls);
    }

    progress.step = 'verify';
    const created = lookups.fstat(fd);
    if (Number(created.size) === size && isAsWanted(settings.owner, mode, existing, created)) {
      if (durability !== 'none' && !isSynced) await run(file.sync(), calls);
      file.closeNow(lookups);
    } else await run(file.finish(attributesFor(settings, existing), durability), calls);

    progress.step = 'rename';
    waiting.signal?.throwIfAborted();
    if (isOvertaken(waiting)) {
      await run(file.discard(), calls);
      return { path, written: false, bytes: size };
    }
    progress.isRenaming = true;
    try {
      if (now) now.rename(temporary, to);
      else {
        waiting.turn.renaming = temporary;
        await fs.rename(temporary, to);
      }
    } catch (error) {
      // Perhaps a synchronous write has removed the file.
      if (isOvertaken(waiting)) {
        await run(file.discard(), calls);
        return { path, written: false, bytes: size };
      }
      await run(recoverRename(temporary, to, created, waiting, withErrno(error)), calls);
    } finally {
      waiting.turn.renaming = undefined;
    }
    progress.published = true;
    progress.step = 'sync-directory';
    if (durability === 'full') await run(directory.sync(), calls);
    if (settings.sweep && isSweepDue(directory, fs)) {
      await run(sweepFiles(directory, { fs, now: created.ctimeNs, isUrgent: true }), calls);
    }
    return { path, written: true, bytes: size };
  } catch (error) {
    const cause = withErrno(error);
    if (file && !progress.published) await run(abandon(file, progress, calls), calls);
    throw await run(failureOf(cause, progress, directory, settings, calls, waiting), calls);
  } finally {
    directory.closeNow(lookups);
  }
}

function run<T>(effects: Effects<T>, { fs, allows }: SynchronousCalls): Promise<T> {
  return runAsync(effects, fs, allows);
}

/** It changes while something is awaited. */
function isOvertaken({ turn }: Waiting): boolean {
  return turn.overtaken;
}
