/**
 * The mounts of this process. kubelet mounts a `subPath` by binding a file or directory of one revision, so the mount
 * always shows that revision, and no watcher can see an update.
 */
import { constants } from 'node:fs';

import { call, type Effects } from './effects.js';
import { readToEnd } from './read-to-end.js';
import { isRevisionName } from './volume-layout.js';

const MOUNT_TABLE = '/proc/self/mountinfo';

/** A mount of this process. */
export interface Mount {
  /** `st_dev` of the mounted file system. Files in a Btrfs subvolume have another one. */
  readonly device: bigint;
  /** Where it is mounted. */
  readonly point: string;
  /** Which part of its file system is mounted there. */
  readonly root: string;
  /** The type of its file system, as `nfs4` or `fuse.sshfs`. */
  readonly type: string;
}

/** A mount that never shows an update. */
interface StaleMount {
  /** `revision`: one revision of a volume, as a `subPath` is. `file`: a single file. */
  readonly kind: 'revision' | 'file';
  /** What it is and what to do. */
  readonly message: string;
}

/**
 * Finds the mount that hides updates at this path; undefined if there is none.
 *
 * @param realPath every link resolved.
 * @param kind what is there: a directory that is a mount point shows its changes.
 */
export function staleMountIn(
  mounts: readonly Mount[],
  realPath: string,
  kind: 'file' | 'directory',
): StaleMount | undefined {
  const mount = mountOf(realPath, mounts);
  if (!mount) return undefined;
  if (mount.root.split('/').some(isRevisionName)) {
    const message = `"${mount.point}" is a subPath mount of one revision; it never changes. Mount the whole volume instead`;
    return { kind: 'revision', message };
  }
  if (kind === 'file' && mount.point === realPath) {
    const message = `"${realPath}" is mounted by itself (subPath, or a bind mount of one file); a file that replaces its source never appears there. Mount the directory instead`;
    return { kind: 'file', message };
  }
  return undefined;
}

/** All mounts; empty without a mount table (not on Linux, or /proc is hidden). */
export function* readMounts(): Effects<readonly Mount[]> {
  try {
    return parse(yield* readTable());
  } catch {
    return [];
  }
}

function* readTable(): Effects<string> {
  const fd = yield* call('open', MOUNT_TABLE, constants.O_RDONLY);
  try {
    return String(yield* readToEnd(fd));
  } finally {
    yield* call('close', fd);
  }
}

/**
 * Parses `mountinfo` (`proc_pid_mountinfo(5)`): the third field is the device, the fourth the root, the fifth the mount
 * point; the type follows a hyphen.
 */
function parse(table: string): Mount[] {
  return table.split('\n').flatMap((line) => {
    const [, , device, root, point, ...rest] = line.split(' ');
    const type = rest[rest.indexOf('-') + 1] ?? '';
    return device !== undefined && root !== undefined && point !== undefined
      ? [{ device: deviceNumber(device), root: unescape(root), point: unescape(point), type }]
      : [];
  });
}

/** `major:minor` as `stat` shows it (`makedev(3)`). */
function deviceNumber(device: string): bigint {
  const [major = 0n, minor = 0n] = device.split(':').map(BigInt);
  return (minor & 0xffn) | ((major & 0xfffn) << 8n) | ((minor & ~0xffn) << 12n) | ((major & ~0xfffn) << 32n);
}

/** Spaces and backslashes are written as octal numbers. */
function unescape(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 8)));
}

/**
 * The mount that a path is on: the one with the longest mount point, and of equal ones the last, which is on top.
 */
export function mountOf(path: string, mounts: readonly Mount[]): Mount | undefined {
  let found: Mount | undefined;
  for (const mount of mounts) {
    const inside = path === mount.point || path.startsWith(mount.point === '/' ? '/' : `${mount.point}/`);
    if (inside && mount.point.length >= (found?.point.length ?? 0)) found = mount;
  }
  return found;
}
