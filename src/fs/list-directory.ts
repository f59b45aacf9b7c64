import type { BigIntStats, Dirent } from 'node:fs';

import { mayHaveLostBytes } from '../core/path-bytes.js';
import type { OpenDirectory } from '../core/file-system.js';
import { call, type Effects } from './effects.js';

/**
 * A directory of this size may hold so many entries that listing them in one call would stop the event loop for
 * milliseconds, bytes: a thousand of them or so, on any file system.
 */
const LARGE_BYTES = 32_768n;

/** The entries of a directory, in any order: a large one in portions. Throws what the calls throw. */
export function* listDirectory(path: string, { size }: BigIntStats): Effects<Dirent[]> {
  if (size < LARGE_BYTES) return yield* call('scandir', path);
  const directory = yield* call('opendir', path);
  let entries: Dirent[] | undefined;
  try {
    entries = yield* allEntries(directory);
  } finally {
    yield* call('closedir', directory);
  }
  return entries ?? (yield* call('scandir', path));
}

/** Undefined if there are names that are not UTF-8: only a listing in one call distinguishes them. */
function* allEntries(directory: OpenDirectory): Effects<Dirent[] | undefined> {
  const entries: Dirent[] = [];
  for (;;) {
    const portion = yield* call('readEntries', directory);
    if (portion.length === 0) return entries;
    for (const entry of portion) {
      if (mayHaveLostBytes(entry.name)) return undefined;
      entries.push(entry);
    }
  }
}
