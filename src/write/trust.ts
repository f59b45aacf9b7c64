/**
 * The kernel's rules for directories such as /tmp, where every user can create entries (`fs.protected_symlinks` and
 * `fs.protected_regular` of sysctl). They are applied here whatever the sysctl says: links are resolved in user space,
 * which the kernel does not notice, and a rename over a file is not covered by the kernel's rule at all.
 */
import type { BigIntStats } from 'node:fs';

import { nodeFileSystem } from '../core/ports/builtins.js';
import { readProc } from '../fs/calls.js';

const STICKY = 0o1000n;
const GROUP_WRITE = 0o020n;
const OTHERS_WRITE = 0o002n;

/** `protected_symlinks`: in a sticky directory that all can write to, only the links of its owner and of ourselves. */
export function mayFollow(link: BigIntStats, directory: BigIntStats): boolean {
  return !isSticky(directory, OTHERS_WRITE) || isTrusted(link, directory);
}

/**
 * `protected_regular = 2`: in a sticky directory that others can write to, only files of its owner and of ourselves.
 */
export function mayReplace(file: BigIntStats, directory: BigIntStats): boolean {
  return !isChosenByOthers(directory) || isTrusted(file, directory);
}

/**
 * Whether other users may have chosen which file has a name: in a sticky directory that its group or all can write to.
 * They cannot create a file of another user, but they can link or move one there.
 */
export function isChosenByOthers(directory: BigIntStats): boolean {
  return isSticky(directory, GROUP_WRITE | OTHERS_WRITE);
}

function isSticky({ mode }: BigIntStats, writers: bigint): boolean {
  return (mode & STICKY) !== 0n && (mode & writers) !== 0n;
}

function isTrusted(entry: BigIntStats, directory: BigIntStats): boolean {
  return !isNobody('uid', entry.uid) && (entry.uid === directory.uid || hasOurId(entry));
}

/** Whether it belongs to the user of this process, who is trusted in any directory. */
export function hasOurId({ uid }: BigIntStats): boolean {
  const user = Number(uid);
  // Windows has neither user IDs nor sticky directories.
  return user === (process.geteuid?.() ?? user);
}

/** The number of IDs that a user namespace maps if it maps all: every 32-bit number except -1, which is no ID. */
const ALL_IDS = 2 ** 32 - 1;

/**
 * Whether an ID may stand for any user or group. If a user namespace does not map all IDs (`uid_map`), the kernel shows
 * every other one as the overflow ID (`overflowuid`), which may also be mapped itself. If the tables cannot be read,
 * the overflow ID counts as such.
 */
export function isNobody(kind: 'uid' | 'gid', id: bigint): boolean {
  if (process.platform !== 'linux') return false;
  const overflow = (overflowIds[kind] ??= BigInt(
    readProc(nodeFileSystem, `/proc/sys/kernel/overflow${kind}`)?.trim() ?? 65_534,
  ));
  if (id !== overflow) return false;
  const map = readProc(nodeFileSystem, `/proc/self/${kind}_map`) ?? '';
  const mapped = map.split('\n').map((line) => Number(line.trim().split(/\s+/)[2] ?? 0));
  return mapped.reduce((sum, count) => sum + count, 0) < ALL_IDS;
}

const overflowIds: Partial<Record<'uid' | 'gid', bigint>> = {};

/** Whether it belongs neither to the user of this process nor to root. Its owner may go on changing it. */
export function isOfAnotherUser(entry: BigIntStats): boolean {
  return isNobody('uid', entry.uid) || (!hasOurId(entry) && entry.uid !== 0n);
}
