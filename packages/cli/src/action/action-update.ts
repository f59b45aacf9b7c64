import { Buffer } from 'node:buffer';

import type { Change } from 'resilient-watcher';

/** The changes at one path: names only, never contents. */
export interface PathUpdate {
  /** The watched path, absolute. */
  readonly path: string;
  /** The keys that are new. */
  readonly added: readonly string[];
  /** The keys whose contents differ. */
  readonly changed: readonly string[];
  /** The keys that are gone. */
  readonly removed: readonly string[];
  /** What `..data` points to; null outside a volume. */
  readonly revision: string | null;
}

/** The input of an action: everything that changed since it last succeeded. */
export interface ActionUpdate {
  /** The paths that changed. */
  readonly paths: readonly PathUpdate[];
  /** What triggered the newest change; see `Change.cause`. */
  readonly cause: string;
}

/** Converts a change into the input of an action. */
export function updateOf(change: Omit<Change, 'previous'>, path: string): ActionUpdate {
  const { added, changed, removed, current, cause } = change;
  return { paths: [{ path, added, changed, removed, revision: current.revision ?? null }], cause };
}

/** Merges an update that has not been handled with a later one. */
export function mergeUpdates(earlier: ActionUpdate, later: ActionUpdate): ActionUpdate {
  const paths = new Map(earlier.paths.map((update) => [update.path, update]));
  for (const update of later.paths) {
    const before = paths.get(update.path);
    paths.set(update.path, before ? mergePaths(before, update) : update);
  }
  return { paths: [...paths.values()], cause: later.cause };
}

function mergePaths(earlier: PathUpdate, later: PathUpdate): PathUpdate {
  const added = new Set(earlier.added);
  const changed = new Set(earlier.changed);
  const removed = new Set(earlier.removed);
  const move = (key: string, to: Set<string>): void => {
    for (const keys of [added, changed, removed]) keys.delete(key);
    to.add(key);
  };
  for (const key of later.added) move(key, removed.has(key) ? changed : added);
  for (const key of later.changed) move(key, added.has(key) ? added : changed);
  for (const key of later.removed) {
    // The key was added and removed again: for the action it never existed.
    if (added.delete(key)) continue;
    move(key, removed);
  }
  const { path, revision } = later;
  return { path, revision, added: [...added], changed: [...changed], removed: [...removed] };
}

/** Linux limits a string of the environment to 128 KiB (`execve(2)`); with a longer one the command would not start. */
const MAX_VARIABLE_BYTES = 65_536;

/**
 * The update as environment variables. `RW_KEYS` is a JSON array. `RW_PATH` and `RW_REVISION` have one value per line,
 * except values that contain a line break. Each variable has as many whole values as fit into 64 KiB. `RW_CAUSE` is a
 * word.
 */
export function environmentOf({ paths, cause }: ActionUpdate): Readonly<Record<string, string>> {
  const keys = paths.flatMap(({ added, changed, removed }) => [...added, ...changed, ...removed]);
  return {
    RW_PATH: lines(paths.map(({ path }) => path)),
    RW_KEYS: `[${fitting(keys.map((key) => JSON.stringify(key))).join(',')}]`,
    RW_REVISION: lines(paths.flatMap(({ revision }) => revision ?? [])),
    RW_CAUSE: cause,
  };
}

function lines(values: readonly string[]): string {
  return fitting(values.filter((value) => !value.includes('\n'))).join('\n');
}

function fitting(values: readonly string[]): string[] {
  let bytes = 0;
  return values.filter((value) => (bytes += Buffer.byteLength(value) + 1) <= MAX_VARIABLE_BYTES);
}
