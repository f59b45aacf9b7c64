/**
 * Windows on Linux, as far as paths go: `process.platform`, `node:path`, and a file system in which drives and the share
 * `\\server\share` are directories. What Node.js does there with a path before each call is done by `node:path` itself. Imported
 * before the library; then, because Node.js no longer finds modules, `pretend()` is called after it.
 */
import fs from 'node:fs';
import path from 'node:path';
import { syncBuiltinESMExports } from 'node:module';

Object.defineProperty(process, 'platform', { value: 'win32' });

const win32 = { ...path.win32 };
const linux = { ...fs };

/** Where a path of Windows leads; undefined for a name that cannot be. */
function placeOf(root, given) {
  const full = win32.resolve(String(given)).replace(/^\\\\\?\\(?=[A-Z]:)/i, '');
  const [, drive, inDrive] = /^([A-Z]):\\(.*)$/is.exec(full) ?? [];
  const [, share, inShare] = /^\\\\server\\(share)\\?(.*)$/is.exec(full) ?? [];
  const rest = inDrive ?? inShare;
  if (rest === undefined || /[:*?"<>|]/.test(rest)) return undefined;
  return `${root}/${(drive ?? share).toLowerCase()}/${rest.replaceAll('\\', '/')}`;
}

/** @returns the file system whose drives are directories of `root`. */
export function pretend(root, cwd) {
  const place = (call, given) => {
    const at = placeOf(root, given);
    if (at !== undefined) return at;
    const message = `ENOENT: no such file or directory, ${call} '${given}'`;
    throw Object.assign(new Error(message), { code: 'ENOENT', errno: -4058, syscall: call, path: given });
  };
  const io = { ...linux };
  for (const name of [
    'lstat',
    'stat',
    'readlink',
    'readdir',
    'open',
    'statfs',
    'chmod',
    'unlink',
    'mkdir',
    'rmdir',
  ]) {
    io[`${name}Sync`] = (given, ...rest) => {
      try {
        return linux[`${name}Sync`](place(name, given), ...rest);
      } catch (error) {
        if (rest[0]?.throwIfNoEntry === false && error.code === 'ENOENT') return undefined;
        throw error;
      }
    };
    io[name] = (given, ...rest) => {
      try {
        linux[name](place(name, given), ...rest);
      } catch (error) {
        setImmediate(() => rest.at(-1)(error));
      }
    };
  }
  io.renameSync = (from, to) => linux.renameSync(place('rename', from), place('rename', to));
  io.rename = (from, to, done) => linux.rename(place('rename', from), place('rename', to), done);
  io.watch = (given, ...rest) => linux.watch(place('watch', given), ...rest);
  process.cwd = () => cwd;
  // Node.js itself uses `toNamespacedPath` for each call.
  const { posix, toNamespacedPath } = path;
  Object.assign(path, win32, { posix, win32, toNamespacedPath });
  syncBuiltinESMExports();
  return io;
}
