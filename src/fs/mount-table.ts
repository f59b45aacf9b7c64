/**
 * Reads the lines of `/proc/self/mountinfo` (`proc_pid_mountinfo(5)`), and finds the mounts that a path can lead to.
 *
 * | a mount                                                        | a path                                    |
 * |----------------------------------------------------------------|-------------------------------------------|
 * | whose mount point is in its parent, and the parent is reached  | leads to it                               |
 * | that has another mount on its root                             | leads to the other one                    |
 * | below the mount point of another one on the same parent        | no longer leads to it                     |
 * | on a parent that no path leads to                              | no longer leads to it                     |
 */

import { dirname } from '../core/ports/platform-path.js';
import { pathFromBytes } from '../core/ports/path-bytes.js';
import { kindOfType, type FileSystemKind } from './file-system-kind.js';

/** A mount of this process. */
export interface Mount {
  /** Differs from that of the mount that was at this point before; empty if only the kind is known. */
  readonly id: string;
  /** The directory or file where it is mounted. */
  readonly point: string;
  /** Which part of its file system is mounted there; empty if only the kind is known. */
  readonly root: string;
  readonly kind: FileSystemKind;
  /**
   * The mount because of which a call on this one may never return: itself, or the nearest one above it, whose server is
   * asked for the mount point. Undefined if there is none. The root does not count: without it, nothing runs.
   */
  readonly hangsWith?: Mount | undefined;
}

/** A line of the table. */
interface Line {
  readonly id: string;
  /** The id of the mount that it is mounted on. */
  readonly parent: string;
  /** As in `st_dev`. */
  readonly device: bigint;
  readonly root: string;
  readonly point: string;
  readonly kind: FileSystemKind;
}

/** Whether a call may never return. A lookup in an autofs waits for the file system that it mounts: its kind is unknown. */
export function callsMayHang({ place }: Pick<FileSystemKind, 'place'>): boolean {
  return place === 'remote' || place === 'unknown';
}

/** The third field is the device, the fourth the root, the fifth the mount point; the type follows a hyphen. */
export function linesOf(table: string): Line[] {
  return table.split('\n').flatMap((line) => {
    const [id = '', parent = '', device = '', root, point, ...rest] = line.split(' ');
    if (root === undefined || point === undefined) return [];
    const kind = kindOfType(rest[rest.indexOf('-') + 1] ?? '');
    // In an initramfs, the root is mounted on itself.
    const on = parent === id ? '' : parent;
    return [
      { id, parent: on, device: deviceNumber(device), root: unescape(root), point: unescape(point), kind },
    ];
  });
}

/** The mounts that a path can lead to, by mount point. */
export function reachableMounts(lines: readonly Line[]): Map<string, Mount> {
  const pointOf = new Map(lines.map(({ id, point }) => [id, point]));
  /** By parent and mount point. */
  const mounted = new Map(lines.map((line) => [`${line.parent} ${line.point}`, line]));
  const children = new Map<string, Line[]>();
  for (const line of mounted.values()) {
    const some = children.get(line.parent);
    if (some) some.push(line);
    else children.set(line.parent, [line]);
  }
  const isCovered = ({ parent, point }: Line): boolean => {
    const top = pointOf.get(parent) ?? '/';
    while (point !== top && point !== '/') {
      point = dirname(point);
      if (mounted.has(`${parent} ${point}`)) return true;
    }
    return false;
  };
  const reached = new Map<string, Mount>();
  // Not recursive: there may be thousands of mounts on one directory. That of the root is not in the table.
  const pending = [...mounted.values()]
    .filter(({ parent }) => !pointOf.has(parent))
    .map((line) => ({ line, above: NONE }));
  for (const { line, above } of pending) {
    if (isCovered(line)) continue;
    const { id, point, root, kind } = line;
    const mount: { -readonly [K in keyof Mount]: Mount[K] } = { id, point, root, kind };
    mount.hangsWith = callsMayHang(kind) ? mount : above?.hangsWith;
    if (!mounted.has(`${id} ${point}`)) reached.set(point, mount);
    const around = point === '/' ? NONE : mount;
    for (const child of children.get(id) ?? []) {
      // A mount on the root of another one is entered without a lookup in that.
      pending.push({ line: child, above: child.point === point ? above : around });
    }
  }
  return reached;
}

const NONE: Mount | undefined = undefined;

/** "major:minor" as a number, as in `st_dev` (`makedev(3)`). */
function deviceNumber(device: string): bigint {
  const [major = 0, minor = 0] = device.split(':').map(Number);
  const low = minor % 256;
  // In the kernel the major number has 12 bits and the minor one 20.
  return BigInt((minor - low) * 4096 + major * 256 + low);
}

/** Decodes spaces and backslashes, which are written as octal numbers, and bytes that are not UTF-8. */
function unescape(field: string): string {
  const bytes = field.replace(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(parseInt(digits, 8)),
  );
  return pathFromBytes(Buffer.from(bytes, 'latin1'));
}
