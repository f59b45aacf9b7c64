/** Identifies files and their contents by inode and timestamps. */
import type { BigIntStats } from 'node:fs';

/** The bits of a mode that are not the file type. */
export const PERMISSIONS = 0o7777;

/** Tells an inode from others, and its content from earlier content. Inode numbers alone are reused immediately. */
export type Inode = Pick<BigIntStats, 'dev' | 'ino' | 'birthtimeNs' | 'size' | 'mtimeNs' | 'ctimeNs'>;

/** A copy without the rest of the stat, which would stay in memory. */
export function inodeOf({ dev, ino, birthtimeNs, size, mtimeNs, ctimeNs }: BigIntStats): Inode {
  return { dev, ino, birthtimeNs, size, mtimeNs, ctimeNs };
}

/** Whether these are the same file or directory. */
export function isSameInode(one: Inode, other: Inode): boolean {
  return one.ino === other.ino && one.dev === other.dev && one.birthtimeNs === other.birthtimeNs;
}

/** Whether these are the same file or directory with the same content, judging by the timestamps. */
export function isUnchanged(one: Inode, other: Inode): boolean {
  const isSame = one.mtimeNs === other.mtimeNs && one.ctimeNs === other.ctimeNs && one.size === other.size;
  return isSame && isSameInode(one, other);
}

/** Identifies a file or directory. */
export function identityOf({ dev, ino, birthtimeNs }: Inode): string {
  // Joined, because a template would keep each of its pieces in memory.
  return [dev, ino, birthtimeNs].join(':');
}

/** Two writes within one tick of the file system's clock leave the same timestamps; on FAT a tick is 2 s. */
const COARSEST_TICK_MS = 2_000;

/**
 * Whether every later change of a file shows in its timestamps.
 * @param now when the timestamps were read, epoch ms.
 */
export function timestampsAreReliable({ ctimeNs }: Inode, now: number): boolean {
  return now - Number(ctimeNs / 1_000_000n) > COARSEST_TICK_MS;
}

/**
 * Whether a timestamp, ns, is from the last `withinMs`. One from the future comes from another clock and says nothing.
 */
export function isRecent(timeNs: bigint, now: number, withinMs = COARSEST_TICK_MS): boolean {
  const ageMs = now - Number(timeNs / 1_000n) / 1_000;
  return ageMs < withinMs && ageMs > -COARSEST_TICK_MS;
}

/** The prefix of the digest of a file that was not read. */
export const NOT_READ = 'stat:';

/** The digest of a file that is not read. */
export function statDigest({ dev, ino, size, mtimeNs, ctimeNs }: Inode): string {
  return `${NOT_READ}${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
}
