/**
 * Links of `/proc` that lead to an object and not to a path (`proc_pid_root(5)`, `proc_pid_fd(5)`): the root directory of
 * a container in another mount namespace, the working directory or an open file of a process. Their text is a path there,
 * not here, so only the kernel can follow them. What is behind one has a path that begins with the link and `/.`, which
 * the kernel resolves in each call: `/proc/7/root/./etc/app.conf`. Its parent is `/proc/7/root/./..`.
 *
 * | a symbolic link                                     | is                                                        |
 * |-----------------------------------------------------|-----------------------------------------------------------|
 * | `cwd`, `exe`, `root` or a namespace, without a size | magic                                                     |
 * | named like an open file or a mapping, with the size | magic                                                     |
 * | 64 and less than all permissions                    |                                                           |
 * | any other                                           | text; outside of `/proc`, its size is its length          |
 */
import type { BigIntStats } from 'node:fs';

import { dirname } from '../core/ports/platform-path.js';

const OF_PROCESS = /^(?:cwd|exe|root|cgroup|ipc|mnt|net|user|uts|(?:pid|time)(?:_for_children)?)$/;
const OF_FILE = /^(?:\d+|[\da-f]+-[\da-f]+)$/;

const ALL_PERMISSIONS = 0o777n;

/** What a link with this name and status is. */
export function linkKind(name: string, { size, mode }: BigIntStats): 'magic' | 'text' {
  if (size === 0n && OF_PROCESS.test(name)) return 'magic';
  const isOfFile = size === 64n && (mode & ALL_PERMISSIONS) !== ALL_PERMISSIONS && OF_FILE.test(name);
  return isOfFile ? 'magic' : 'text';
}

/** Whether a resolved path leads through such a link. */
export function isBehindMagicLink(path: string): boolean {
  return path.includes('/./') || path.endsWith('/.');
}

/** The part of a resolved path up to the last such link, as the path of what is behind it. */
export function magicLinkOf(path: string): string {
  return path.slice(0, `${path}/`.lastIndexOf('/./') + 2);
}

/** The parent of a resolved path. Behind a link, it is left to the kernel. */
export function parentOf(path: string): string {
  if (path.endsWith('/.') || path.endsWith('/..')) return `${path}/..`;
  // A drive has none.
  return dirname(path) === path ? path : path.slice(0, path.lastIndexOf('/'));
}
