import { systemClock } from '../core/clock.js';
import type { FileSystem } from '../core/file-system.js';
import { call, type Effects } from '../fs/effects.js';
import type { HeldDirectory } from './held-directory.js';
import {
  isAbandoned,
  isPendingFileName,
  mayBePendingFile,
  removeUnfinished,
  surveyOwners,
} from './temporary-name.js';

/**
 * How often this process lists a directory that it writes to, ms. On a disk it takes as long as a tenth of a small write:
 * the kernel notes that the directory was read, and the next sync has to write that, too.
 */
const SWEEP_INTERVAL_MS = 60_000;

/** How many unfinished files one sweep examines. Writers leave a few at most; anybody can create any number. */
const MAX_EXAMINED = 256;

/** When directories were swept, monotonic ms, by file system and by their paths, the latest last. */
const sweeps = new WeakMap<FileSystem, Map<string, number>>();

/** What a sweep has to know besides the directory. */
interface SweepSettings {
  readonly fs: FileSystem;
  /** The time of the file system's own clock, ns, if it is known. */
  readonly now: bigint | undefined;
  /** The room that they take is needed: it does not matter when the directory was swept last. */
  readonly isUrgent?: boolean;
}

/**
 * Removes what killed writers left in a directory, as far as that is possible; nothing if it was done a short while ago.
 * A writer that is started again and again leaves no more than one file: each process begins with a sweep.
 */
export function* sweepFiles(
  directory: HeldDirectory,
  { fs, now, isUrgent = false }: SweepSettings,
): Effects<void> {
  if (!isUrgent && !isSweepDue(directory, fs)) return;
  let entries: readonly string[];
  try {
    entries = yield* call('readdir', directory.at('.'));
  } catch {
    // The directory may be written to, but not listed.
    return;
  }
  // Cheaply first: there may be any number of planted names.
  const candidates = entries.filter(mayBePendingFile);
  if (candidates.length === 0) return;
  const hasEnded = surveyOwners();
  for (const name of someOf(candidates)) {
    if (!isPendingFileName(name)) continue;
    try {
      if (yield* isAbandoned(directory, name, now, hasEnded)) yield* removeUnfinished(directory.at(name));
    } catch {
      // It cannot be examined.
    }
  }
}

/** Whether a directory was not swept for a while. If so, it counts as swept now. */
export function isSweepDue({ path }: HeldDirectory, fs: FileSystem): boolean {
  let swept = sweeps.get(fs);
  if (!swept) sweeps.set(fs, (swept = new Map<string, number>()));
  // All writers of the process have this clock in common, whatever theirs are.
  const nowMs = systemClock.monotonic();
  const last = swept.get(path);
  if (last !== undefined && nowMs - last < SWEEP_INTERVAL_MS) return false;
  for (const [other, at] of swept) {
    if (nowMs - at < SWEEP_INTERVAL_MS) break;
    swept.delete(other);
  }
  swept.delete(path);
  swept.set(path, nowMs);
  return true;
}

/** At most `MAX_EXAMINED` of them, others each time: planted names cannot keep the rest from being examined for ever. */
function someOf(names: readonly string[]): readonly string[] {
  if (names.length <= MAX_EXAMINED) return names;
  const first = process.getBuiltinModule('node:crypto').randomInt(names.length);
  return [...names.slice(first), ...names.slice(0, first)].slice(0, MAX_EXAMINED);
}
