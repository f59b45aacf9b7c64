/**
 * The kernel's rules for directories such as /tmp, where every user can create entries (`fs.protected_symlinks` and
 * `fs.protected_regular` of sysctl). They are applied here whatever the sysctl says: links are resolved in user space,
 * which the kernel does not notice, and a rename over a file is not covered by the kernel's rule at all.
 */
import type { BigIntStats } from 'node:fs';

import { PERMISSIONS } from '../fs/file-identity.js';

const STICKY = 0o1000n;
const GROUP_WRITE = 0o020n;
const OTHERS_WRITE = 0o002n;

/** `protected_symlinks`: in a sticky directory that all can write to, only the links of its owner and of ourselves. */
export function mayFollow(link: BigIntStats, directory: BigIntStats): boolean {
  return !isSharedWith(OTHERS_WRITE, directory) || isTrusted(link, directory);
}

/**
 * `protected_regular = 2`: in a sticky directory that its group or all can write to, only the files of its owner and
 * of ourselves. Others may have created the file so that its owner and mode pass on to what replaces it.
 */
export function mayReplace(file: BigIntStats, directory: BigIntStats): boolean {
  return !isSharedWith(GROUP_WRITE | OTHERS_WRITE, directory) || isTrusted(file, directory);
}

function isSharedWith(writers: bigint, { mode }: BigIntStats): boolean {
  return (mode & STICKY) !== 0n && (mode & writers) !== 0n;
}

function isTrusted(entry: BigIntStats, directory: BigIntStats): boolean {
  return entry.uid === directory.uid || isOurs(entry);
}

/** Whether it belongs to the user of this process, who is trusted in any directory. */
export function isOurs({ uid }: BigIntStats): boolean {
  const user = Number(uid);
  // Windows has neither user ids nor sticky directories.
  return user === (process.geteuid?.() ?? user);
}

/**
 * The permissions that a file passes on to the one that replaces it. With an ACL, the group bits are the ACL's mask: the
 * most it grants to anybody, not what it grants to the group. Node.js cannot read ACLs, so none is taken at its word.
 */
export function inheritedMode({ mode }: BigIntStats): number {
  return withoutGroup(Number(mode) & PERMISSIONS);
}

/** These permissions, with only those for the group that everybody has. */
export function withoutGroup(mode: number): number {
  return (mode & ~0o070) | (mode & ((mode & 0o007) << 3));
}
