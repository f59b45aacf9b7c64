/**
 * Reads one file, unless it is known.
 *
 * | the file                                                | then                                       |
 * |---------------------------------------------------------|--------------------------------------------|
 * | has the known inode, and every later change shows in it | the result is the known file               |
 * | is within the limits                                    | it is read                                 |
 * | is larger, or contents are not wanted                   | inode and timestamps stand for its content |
 * | is no longer a regular file, or is gone                 | the result is undefined                    |
 * | outgrows `maxContentBytes` while it is read             | undefined: it may no longer be at the path |
 * | changes while it is read, and is no longer at the path  | undefined                                  |
 * | reports no size, as in /proc, and is larger             | inode and timestamps stand for its content |
 */
import type { BigIntStats } from 'node:fs';

import { dirname, toPlatform } from '../../core/ports/platform-path.js';
import { errnoOf } from '../../core/errors/errno.js';
import { wait, type Steps } from '../../core/scheduling/steps.js';
import type { Disk } from '../disk.js';
import { PERMISSIONS } from '../../core/options/mode.js';
import { inodeOf, isSameInode, timestampsAreReliable, isUnchanged, statDigest } from '../file-identity.js';
import type { Kept } from '../read-limits.js';
import type { Way } from '../resolve.js';
import { digestOf, FileSnapshot, type FileStamp } from '../snapshot.js';

/** Where a file was found. */
export interface FilePlace {
  /** The path for its snapshot. */
  readonly path: string;
  /** Every link resolved. */
  readonly realPath: string;
  readonly way: Way;
}

/** How a file is read. */
export interface FileWanted {
  readonly kept: Kept;
  readonly maxContentBytes: number;
}

/** A rename stamps the directory and the file one right after the other, ns. */
const RENAME_NS = 1_000_000n;

/**
 * Reads the file at a place.
 * @param stat the stat of the file, if the caller knows it: then a known file is not read again.
 * @param known the file that was found there before.
 */
export function* fileAt(
  place: FilePlace,
  stat: BigIntStats | undefined,
  known: FileSnapshot | undefined,
  wanted: FileWanted,
  disk: Disk,
): Steps<FileSnapshot | undefined> {
  const { kept, maxContentBytes } = wanted;
  const keptOfThis = stat && stat.size > maxContentBytes ? 'identities' : kept;
  const before = known && stampAt(place, known, keptOfThis);
  if (stat && before?.timestampsAreReliable && isUnchanged(stat, before.inode)) return known;
  if (stat && keptOfThis === 'identities') return yield* unreadFile(place, stat, known, disk);
  const readAt = disk.clock.monotonic();
  const reading = yield* disk.read(place.realPath, keptOfThis === 'identities' ? -1 : maxContentBytes, stat);
  if (!reading?.stat.isFile()) return undefined;
  const { stat: found, bytes, isSteady } = reading;
  if (!bytes) {
    const hasNoSize = keptOfThis !== 'identities' && found.size === 0n;
    if (stat && !hasNoSize) return undefined;
    const size = hasNoSize ? maxContentBytes + 1 : undefined;
    const unread = yield* unreadFile(place, found, known, disk, false, size);
    return known && FileSnapshot.haveSameContent(known, unread) && stampAt(place, known, 'identities')
      ? known
      : unread;
  }
  if (!isSteady) {
    const now = yield* disk.afresh.lstat(place.realPath);
    if (!now || !isSameInode(now, found)) return undefined;
  }
  const digest = kept === 'contents' ? undefined : digestOf(bytes);
  const isSame = known && (digest ? known.digest === digest : FileSnapshot.bytesOf(known)?.equals(bytes));
  if (isSame && isSteady && before && isUnchanged(found, before.inode)) {
    before.timestampsAreReliable = timestampsAreReliable(before.since, readAt);
    return known;
  }
  const content = digest ? undefined : isSame ? FileSnapshot.bytesOf(known) : bytes;
  const isRenamed = yield* wasRenamed(place, found, known, disk);
  const how = { isSteady, timestampsAreReliable: false, hasFailed: false, isRenamed };
  return fileOf(place, found, how, { content, digest, size: bytes.length }, disk);
}

/**
 * A file that is compared by inode and timestamps.
 * @param hasFailed whether it should have been read.
 * @param size for a file that does not report its size, how much of it was read.
 */
export function* unreadFile(
  place: FilePlace,
  stat: BigIntStats,
  known: FileSnapshot | undefined,
  disk: Disk,
  hasFailed = false,
  size = Number(stat.size),
): Steps<FileSnapshot> {
  const rest = { content: undefined, digest: statDigest(stat), size };
  const isRenamed = yield* wasRenamed(place, stat, known, disk);
  const how = { isSteady: true, timestampsAreReliable: true, hasFailed, isRenamed };
  return fileOf(place, stat, how, rest, disk);
}

/** The stamp of the known file, if the same links led to it and it was kept as wanted. */
function stampAt({ way }: FilePlace, known: FileSnapshot, wanted: Kept): FileStamp | undefined {
  const stamp = FileSnapshot.stampOf(known);
  return stamp.links === way.links && stamp.isSteady && FileSnapshot.keptOf(known) === wanted
    ? stamp
    : undefined;
}

function fileOf(
  place: FilePlace,
  stat: BigIntStats,
  how: Pick<FileStamp, 'isSteady' | 'timestampsAreReliable' | 'hasFailed' | 'isRenamed'>,
  rest: { readonly content: Buffer | undefined; readonly digest: string | undefined; readonly size: number },
  disk: Disk,
): FileSnapshot {
  const { links, retargetedNs, retargetedOn, revision, volume } = place.way;
  const { dev, mode, mtimeNs } = stat;
  const stamp: FileStamp = {
    inode: inodeOf(stat),
    since: disk.clock.monotonic(),
    links,
    volume,
    // The clocks of two file systems say nothing about each other.
    isOlderThanLinks: dev === retargetedOn && mtimeNs < retargetedNs,
    ...how,
  };
  const path = toPlatform?.(place.path) ?? place.path;
  const realPath = toPlatform?.(place.realPath) ?? place.realPath;
  return new FileSnapshot({ path, realPath, revision, mode: Number(mode) & PERMISSIONS, stamp, ...rest });
}

/**
 * Whether the last write of a file came before it was renamed or linked to its place. Not asked of a file in another
 * revision than before: it is complete anyway.
 */
function wasRenamed(
  { realPath, way: { revision } }: FilePlace,
  stat: BigIntStats,
  known: FileSnapshot | undefined,
  disk: Disk,
): Steps<boolean> {
  const isSwapped = revision !== undefined && revision !== known?.revision;
  // An unlink says nothing about its bytes.
  const isAsWritten = stat.mtimeNs >= stat.ctimeNs || stat.nlink === 0n;
  return isSwapped || isAsWritten ? wait(false) : cameByRename(realPath, stat, disk);
}

function* cameByRename(path: string, stat: BigIntStats, disk: Disk): Steps<boolean> {
  const { mtimeNs, ctimeNs } = stat;
  try {
    // Asked after the file: a file that is replaced all the time has come after any earlier answer.
    const entryNs = (yield* disk.afresh.lstat(dirname(path)))?.mtimeNs;
    // A chmod stamps only the file. A file that was created here and written since was written after its directory changed.
    if (entryNs === undefined || mtimeNs >= entryNs || ctimeNs > entryNs + RENAME_NS) return false;
    // The directory also changes when the file is removed after a chmod.
    const now = yield* disk.afresh.lstat(path);
    return now !== undefined && isUnchanged(now, stat);
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return false;
  }
}
