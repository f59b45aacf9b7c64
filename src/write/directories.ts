/** What is done to whole directories. */
import { constants } from 'node:fs';
import { dirname } from 'node:path';

import { errnoOf } from '../core/errors.js';
import { syncDirectory } from './pending-file.js';
import { begin, call, type Effects } from '../fs/effects.js';

const READ_DIRECTORY = constants.O_RDONLY | ((constants as Partial<typeof constants>).O_DIRECTORY ?? 0);

/** Windows cannot open directories, and needs no fsync of them. */
const CAN_SYNC = process.platform !== 'win32';

/** Begins to open a directory that is to be synced; undefined where that is neither possible nor needed. */
export function* beginOpening(path: string): Effects<(() => Effects<number>) | undefined> {
  return CAN_SYNC ? yield* begin('open', path, READ_DIRECTORY) : undefined;
}

/** Makes the names in a directory survive a power cut. */
export function* syncNames(path: string): Effects<void> {
  if (!CAN_SYNC) return;
  const fd = yield* call('open', path, READ_DIRECTORY);
  try {
    yield* syncDirectory(fd);
  } finally {
    yield* call('close', fd);
  }
}

/** Makes a directory and the missing ones above it (mode 0777 less the umask), if need be for good. */
export function* makeDirectories(path: string, durable: boolean): Effects<void> {
  try {
    yield* call('mkdir', path, 0o777);
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return;
    const parent = dirname(path);
    if (errnoOf(error) !== 'ENOENT' || parent === path) throw error;
    yield* makeDirectories(parent, durable);
    yield* makeDirectories(path, durable);
    return;
  }
  if (durable) yield* syncNames(dirname(path));
}

/** Removes a directory with all that is in it, following no link. What is gone already is fine. */
export function* removeTree(path: string): Effects<void> {
  try {
    for (const name of yield* call('readdir', path)) {
      const inner = `${path}/${name}`;
      if ((yield* call('lstat', inner)).isDirectory()) yield* removeTree(inner);
      else yield* call('unlink', inner);
    }
    yield* call('rmdir', path);
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
  }
}
