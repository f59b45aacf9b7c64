/**
 * A path has one form inside the library, absolute and with `/` between its names, and the form of the platform
 * outside:
 *
 * | inside               | outside, on Windows  | also understood there                                   |
 * |----------------------|----------------------|---------------------------------------------------------|
 * | `/C:/dir/file`       | `C:\dir\file`        | `c:/dir/file`, `\dir\file`, `C:file`, `\\?\C:\dir\file` |
 * | `//server/share/dir` | `\\server\share\dir` | `//server/share/dir`, `\\?\UNC\server\share\dir`        |
 *
 * A path is converted where it comes in (`insidePath`, `insideTarget`) and where it goes out (`pathForCall`, `told`).
 * On other systems both forms are the same, and what converts on the way of a key is undefined, so that nothing is
 * called.
 */
import { posix, win32 } from 'node:path';

import { bytesForCall } from './path-bytes.js';

/** Asked for each write, as a test may change it. */
export function isOnWindows(): boolean {
  return process.platform === 'win32';
}

const isWindows = isOnWindows();

/** A drive or a share, as a path inside. */
const ROOT = /^(?:\/[A-Z]:|\/\/[^/]+\/[^/]+)\/?$/i;

/* eslint-disable @typescript-eslint/unbound-method -- none of these uses `this` */
const { dirname: above, isAbsolute, relative } = posix;
const { relative: relativeOnWindows, resolve: resolveOnWindows } = win32;

/** For paths inside. */
export const { basename, resolve } = posix;
/* eslint-enable @typescript-eslint/unbound-method */

/** For paths inside. A drive or a share has no parent. */
export const dirname = isWindows ? (path: string): string => (ROOT.test(path) ? path : above(path)) : above;

/** Where the names of a path inside are split. A share is one name. */
export const BETWEEN_NAMES = isWindows ? /(?<!^\/)(?<!^\/\/[^/]+)\// : '/';

/** What stands between the names of a path that is told. */
export const SLASH = isWindows ? '\\' : '/';

/** A path of Windows in either form, with its own separators, and without the prefix for long paths. */
function plainOnWindows(path: string): string {
  return path
    .replaceAll('/', '\\')
    .replaceAll(/(?!^)\\{2,}/g, '\\')
    .replace(/^\\\\[?.]\\UNC\\/i, '\\\\')
    .replace(/^(?:\\\\[?.])?\\([A-Z]:)(\\|$)/i, '$1\\');
}

/** From an absolute path of Windows. */
function insideOnWindows(path: string): string {
  return path
    .replaceAll('\\', '/')
    .replace(/^[A-Z]:/i, (drive) => `/${drive.toUpperCase()}`)
    .replace(ROOT, (root) => root.replace(/(?<=.)\/$/, ''));
}

function outsideOnWindows(path: string): string {
  const plain = plainOnWindows(path);
  // Above the drives and shares there is nothing to be found.
  return /^\\(?!\\)/.test(plain) ? String.raw`\\?\-` + plain : plain;
}

/**
 * A path from outside, made absolute against the working directory. On Windows it is normalized, as the system does
 * that before it follows links; elsewhere not: `..` after a link means the parent of the link's target, which only the
 * file system knows. A leading `./` is removed, because it means nothing.
 * @throws {TypeError} if it is relative, and the working directory was removed.
 */
export function insidePath(path: string): string {
  if (!isWindows)
    return isAbsolute(path) ? path : `${workingDirectory(path)}/${path.replace(/^(?:\.\/+)+(?=.)/, '')}`;
  const inside = insideOnWindows(resolveOnWindows(plainOnWindows(path)));
  return /[\\/]$/.test(path) && !ROOT.test(inside) ? `${inside}/` : inside;
}

function workingDirectory(path: string): string {
  try {
    return process.cwd();
  } catch (cause) {
    const what = `cannot resolve the relative path ${JSON.stringify(path)}: the working directory of the process was removed`;
    throw new TypeError(`${what}; use an absolute path, or start the process in a directory that exists`, {
      cause,
    });
  }
}

/** The target of the link at this path; a target without a drive is on that of the link. */
export const insideTarget = isWindows
  ? (target: string, link: string): string => {
      const plain = plainOnWindows(target);
      const isRooted = /^\\(?!\\)/.test(plain);
      return insideOnWindows(isRooted ? resolveOnWindows(outsideOnWindows(link), plain) : plain);
    }
  : undefined;

/** The form of the platform, of either form. Undefined where both are the same. */
export const toPlatform = isWindows ? outsideOnWindows : undefined;

/** The same for messages and for everything else that is told. */
export function told(path: string): string {
  return toPlatform?.(path) ?? path;
}

/** A path from outside, made absolute as by `insidePath`, in the form in which it is told. */
export function toldPath(path: string): string {
  return told(insidePath(path));
}

/** The argument for a system call. */
export const pathForCall: (path: string) => string | Buffer = toPlatform ?? bytesForCall;

/** A path that may be relative to a directory, as a key of it: undefined if it is not below the directory. */
export function keyBelow(directory: string, path: string): string | undefined {
  if (!isWindows) {
    const key = relative(directory, resolve(directory, path));
    return key === '..' || key.startsWith('../') ? undefined : key;
  }
  const root = outsideOnWindows(directory);
  const key = relativeOnWindows(root, resolveOnWindows(root, plainOnWindows(path))).replaceAll('\\', '/');
  return /^(?:\.\.(?:\/|$)|[A-Z]:|\/)/i.test(key) ? undefined : key;
}
