/** Identifies files and their contents by inode and timestamps. */
import type { BigIntStats } from 'node:fs';

/** Tells an inode from others, and its content from earlier content. Inode numbers alone are reused immediately. */
export type Inode = Pick<
  BigIntStats,
  'dev' | 'ino' | 'birthtimeNs' | 'size' | 'mtimeNs' | 'ctimeNs' | 'atimeNs'
>;

/** A copy without the rest of the stat, which would stay in memory. */
export function inodeOf({ dev, ino, birthtimeNs, size, mtimeNs, ctimeNs, atimeNs }: BigIntStats): Inode {
  return { dev, ino, birthtimeNs, size, mtimeNs, ctimeNs, atimeNs };
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
 * Whether every change after a read shows in the timestamps. They come from the clock of the file system, which may differ
 * from ours, so only our own time counts: what had these timestamps a tick before it was read gets others when it changes.
 * @param since when the timestamps had been seen first, monotonic ms.
 * @param readAt when the read that found the same timestamps began, monotonic ms.
 */
export function timestampsAreReliable(since: number, readAt: number): boolean {
  return readAt - since > COARSEST_TICK_MS;
}

/** The clocks of two machines that run for each other differ by less, ms: a day covers a wrong time zone. */
const LARGEST_SKEW_MS = 24 * 3_600_000;

/**
 * Whether a file was certainly not written in the last `withinMs`. Its times may come from the clock of a file server, and
 * either clock may have been set, so they are compared with each other: it had rested for as long when it was last read, or
 * changed otherwise. With `relatime`, the first read after a write sets the time of access. Compared with our clock, only a
 * difference that is larger than any skew counts. Far in the future, too: then one of the clocks was never set.
 * @param now epoch ms.
 */
export function hasRested({ mtimeNs, ctimeNs, atimeNs }: Inode, now: number, withinMs: number): boolean {
  const latestNs = atimeNs > ctimeNs ? atimeNs : ctimeNs;
  const restMs = Number((latestNs - mtimeNs) / 1_000_000n);
  const ageMs = now - Number(mtimeNs / 1_000_000n);
  return restMs > withinMs + COARSEST_TICK_MS || Math.abs(ageMs) > LARGEST_SKEW_MS;
}

/** The prefix of the digest of a file that was not read. */
export const NOT_READ = 'stat:';

/** The digest of a file that is not read. */
export function statDigest({ dev, ino, size, mtimeNs, ctimeNs }: Inode): string {
  return `${NOT_READ}${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
}
