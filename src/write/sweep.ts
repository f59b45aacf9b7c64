/**
 * What is unfinished, and the removal of what killed writers left of it:
 *
 *     .rw-<random>.tmp          a file
 *     ..data_tmp-<random>.tmp   the next `..data` link of a volume, or the next link of a key
 *
 * The length of these names does not depend on the name of the target, which may itself be as long as a name can be.
 *
 * Removed is what has not changed for a day, by our clock and by that of the file system, which may be a server's. A
 * writer rarely waits that long for its data, and a machine is rarely suspended that long. If it happens nevertheless,
 * the write fails, and the old content stays.
 */
import { constants } from '../core/ports/builtins.js';
import { systemClock } from '../core/ports/clock.js';
import type { HeldDirectory } from './held-directory.js';
import { wait, type Steps } from '../core/scheduling/steps.js';

const PATTERN = /^(?:\.rw-|\.\.data_tmp-)[0-9a-f-]{36}\.tmp$/;

/** The prefixes by what is unfinished. */
const PREFIXES = { file: '.rw-', link: '..data_tmp-' };

/** A new name for an unfinished file or link. Nobody can guess it. */
export function temporaryName(kind: keyof typeof PREFIXES): string {
  return `${PREFIXES[kind]}${crypto.randomUUID()}.tmp`;
}

/** Whether a directory entry is an unfinished file or link of this library. Watchers should ignore it. */
export function isTemporaryName(name: string): boolean {
  return PATTERN.test(name);
}

/** Whether a name is that of an unfinished file, or of an unfinished link. */
export function isNameOf(kind: keyof typeof PREFIXES, name: string): boolean {
  return name.startsWith(PREFIXES[kind]) && PATTERN.test(name);
}

const ABANDONED_AFTER_MS = 24 * 3_600_000;

/**
 * How often this process lists a directory that it writes to, ms. On a disk, listing takes a tenth of the time of a
 * small write, because it changes the access time of the directory, which the next sync also has to write.
 */
const SWEEP_INTERVAL_MS = 3_600_000;

/** How many unfinished files one sweep examines. Writers leave a few at most; anybody can create any number. */
const MAX_EXAMINED = 256;

/**
 * Removes an unfinished entry, or leaves it to a later sweep. Returns whether it existed and was removed.
 */
export function* removeUnfinished(directory: HeldDirectory, name: string): Steps<boolean> {
  try {
    return yield* directory.unlink(name);
  } catch {
    return false;
  }
}

/** Removes those of the unfinished entries of a directory that are abandoned, and returns the others. */
export function* removeAbandoned(
  directory: HeldDirectory,
  kind: keyof typeof PREFIXES,
  names: readonly string[],
): Steps<string[]> {
  const pending: string[] = [];
  let now: number | undefined;
  yield* directory.forEach(names, function* (name) {
    // Not mtime, which a copy sets back.
    const ctimeMs = Number((yield* wait(directory.lstat(name)))?.ctimeMs ?? Infinity);
    const mayBeAbandoned = systemClock.now() - ctimeMs > ABANDONED_AFTER_MS;
    if (mayBeAbandoned && (now ??= yield* timeIn(directory, kind)) - ctimeMs > ABANDONED_AFTER_MS) {
      yield* removeUnfinished(directory, name);
    } else pending.push(name);
  });
  return pending;
}

const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;

/** The time by the clock of a file system, epoch ms: that of a new file; `-Infinity` if none can be made. */
function* timeIn(directory: HeldDirectory, kind: keyof typeof PREFIXES): Steps<number> {
  const name = temporaryName(kind);
  try {
    yield* wait(
      directory.calls.close(yield* wait(directory.calls.create(directory.at(name), CREATE, 0o600))),
    );
    return Number((yield* wait(directory.lstat(name)))?.ctimeMs ?? -Infinity);
  } catch {
    return -Infinity;
  } finally {
    yield* removeUnfinished(directory, name);
  }
}

/** Removes the files that killed writers left in a directory, as far as that is possible. */
export function* sweepFiles(directory: HeldDirectory): Steps<void> {
  try {
    const names = (yield* directory.list()).map((entry) => entry.name);
    const unfinished = names.filter((name) => isNameOf('file', name));
    yield* removeAbandoned(directory, 'file', unfinished.slice(0, MAX_EXAMINED));
  } catch {
    // The directory may be writable but not readable, or an entry cannot be examined.
  }
}

/** How many directories are remembered. */
const MAX_SWEPT = 1_024;

/** The directories that were swept in the current interval, and when it began, monotonic ms. */
const swept = new Set<string>();
let intervalBegan = -Infinity;

/** Whether a directory has not been swept in the current interval. From now on it counts as swept. */
export function isSweepDue({ path }: HeldDirectory): boolean {
  const now = systemClock.monotonic();
  if (now - intervalBegan >= SWEEP_INTERVAL_MS || swept.size === MAX_SWEPT) {
    swept.clear();
    intervalBegan = now;
  }
  const isDue = !swept.has(path);
  swept.add(path);
  return isDue;
}
