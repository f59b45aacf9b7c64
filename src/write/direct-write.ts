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
import { basename, dirname } from 'node:path';

import { errnoOf, withErrno } from '../core/errno.js';
import type { FileSystemCalls } from '../core/file-system.js';
import { call, runAsync, wait, type Effects } from '../fs/effects.js';
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

/** The modes of the files on disks that were written last, by path; the latest last. */
const expectedModes = new Map<string, number>();

/** Any other file is created a lookup later. */
const MAX_EXPECTED = 256;

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
  const isUsual = !settings.ifChanged && bytes.byteLength <= MAX_WRITE_BYTES && !path.endsWith('/');
  const lookups = isUsual && areEntriesByDescriptor(calls.fs) ? calls.approachNow() : undefined;
  if (!lookups) return write.otherwise();
  let directory: HeldDirectory;
  try {
    directory = HeldDirectory.openNow(dirname(path), lookups, settings.durability === 'full');
  } catch {
    return write.otherwise();
  }
  return writeIn(directory, lookups, write);
}

async function writeIn(
  directory: HeldDirectory,
  lookups: FileSystemCalls,
  { path, bytes, settings, calls, waiting, otherwise }: DirectWrite,
): Promise<AtomicWriteResult> {
  const { fs } = calls;
  const { durability } = settings;
  const size = bytes.byteLength;
  const run = <T>(effects: Effects<T>): Promise<T> => runAsync(effects, fs, calls.allows);
  const progress = new WriteProgress(path);
  const temporary = directory.at(temporaryName('file'));
  const to = directory.at(basename(path));
  let file: PendingFile | undefined;
  try {
    waiting.signal?.throwIfAborted();
    const expected = expectedModes.get(path);
    const syncsAt = (mode: number | undefined): boolean =>
      durability !== 'none' && size > 0 && mode === MODE_WHILE_PENDING;
    let isSynced = syncsAt(expected);
    // Most likely the path is as it was: the file is created while the path is looked up.
    const creating =
      expected === undefined ? undefined : fs.open(temporary, creationFlags(isSynced), MODE_WHILE_PENDING);
    const found = findFile(to, directory, lookups, calls);
    if (!found) {
      expectedModes.delete(path);
      if (creating) await run(discard(temporary, creating));
      return await otherwise();
    }
    const { existing } = found;
    const mode = modeFor(settings.mode, existing);
    // Undefined on a disk, where a change may have to wait for the journal.
    const now = calls.isInMemory ? lookups : undefined;

    progress.step = 'create';
    let fd: number;
    try {
      if (creating) fd = await creating;
      else {
        isSynced = syncsAt(mode) && !now;
        const flags = creationFlags(isSynced);
        fd = now
          ? now.open(temporary, flags, MODE_WHILE_PENDING)
          : await fs.open(temporary, flags, MODE_WHILE_PENDING);
      }
    } catch (error) {
      if (errnoOf(error) === 'EEXIST') return await otherwise();
      await run(removeUnfinished(temporary));
      throw error;
    }
    file = new PendingFile(temporary, fd, progress, isSynced);

    progress.step = 'write';
    if (size > 0) {
      const isSmall = now && size <= SMALL_BYTES;
      const count = isSmall ? now.write(fd, bytes, 0, size) : await fs.write(fd, bytes, 0, size);
      file.addWritten(count);
      if (count < size) await run(file.write(bytes.subarray(count)));
    }

    progress.step = 'verify';
    const created = lookups.fstat(fd);
    const isComplete = Number(created.size) === size && (isSynced || durability === 'none');
    if (isComplete && isAsWanted(settings, existing, created)) file.closeNow(lookups);
    else await run(file.finish(attributesFor(settings, existing), durability));

    progress.step = 'rename';
    waiting.signal?.throwIfAborted();
    if (waiting.isOvertaken()) {
      await run(file.discard());
      return { path, written: false, bytes: size };
    }
    progress.isRenaming = true;
    try {
      if (now) now.rename(temporary, to);
      else await fs.rename(temporary, to);
    } catch (error) {
      await run(recoverRename(temporary, to, created, waiting, withErrno(error)));
    }
    progress.published = true;
    if (!now && expected !== mode) expect(path, mode);
    progress.step = 'sync-directory';
    if (durability === 'full') await run(directory.sync());
    if (settings.sweep && isSweepDue(directory, fs)) {
      await run(sweepFiles(directory, { fs, now: created.ctimeNs, isUrgent: true }));
    }
    return { path, written: true, bytes: size };
  } catch (error) {
    const cause = withErrno(error);
    if (file && !progress.published) await run(abandon(file, progress, calls));
    throw await run(failureOf(cause, progress, directory, settings, calls, waiting));
  } finally {
    directory.closeNow(lookups);
  }
}

/** The file to replace, if there is one; undefined if replacing it is not the usual case. */
function findFile(
  path: string,
  directory: HeldDirectory,
  lookups: FileSystemCalls,
  calls: SynchronousCalls,
): { readonly existing: BigIntStats | undefined } | undefined {
  try {
    const existing = lstatIfExists(path, lookups);
    // What has another `st_dev` than its directory is a mount point, which cannot be replaced.
    if (!calls.enterNow((existing ?? directory.stat).dev)) return undefined;
    if (!existing) return { existing };
    const isUsual = existing.isFile() && (isOurs(existing) || mayReplace(existing, directory.stat));
    return isUsual ? { existing } : undefined;
  } catch {
    // `replaceFile` gives the reason.
    return undefined;
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

function expect(path: string, mode: number): void {
  const [oldest = path] = expectedModes.keys();
  if (expectedModes.size === MAX_EXPECTED) expectedModes.delete(oldest);
  expectedModes.set(path, mode);
}

/** Removes a file that is being created. It may be there even if that fails. */
function* discard(path: string, creating: Promise<number>): Effects<void> {
  try {
    const fd = yield* wait(() => creating);
    yield* call('close', fd);
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return;
  }
  yield* removeUnfinished(path);
}
