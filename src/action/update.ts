import { Buffer } from 'node:buffer';

import type { Change } from '../watch/change.js';

/** What changed at one path: names only, never contents. */
export interface PathUpdate {
  /** The watched path, absolute. */
  readonly path: string;
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
  /** What `..data` points to; null outside a volume. */
  readonly revision: string | null;
}

/** What an action is told: everything that changed since it last succeeded. */
export interface ActionUpdate {
  readonly paths: readonly PathUpdate[];
  /** What led to the newest change, see `Change.cause`. */
  readonly cause: string;
}

/** A change as an action sees it. */
export function updateOf(change: Change, path: string): ActionUpdate {
  const { added, changed, removed, current, cause } = change;
  return { paths: [{ path, added, changed, removed, revision: current.revision ?? null }], cause };
}

/** Two updates of which the first has not been acted on. */
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
    // Added and removed again: for the action it was never there.
    if (added.delete(key)) continue;
    move(key, removed);
  }
  const { path, revision } = later;
  return { path, revision, added: [...added], changed: [...changed], removed: [...removed] };
}

/** A string of the environment can have 128 KiB on Linux (`execve(2)`); longer ones keep a command from starting. */
const MAX_VARIABLE_BYTES = 65_536;

/**
 * The update as environment variables: `RW_PATH`, `RW_KEYS`, `RW_REVISION` and `RW_CAUSE`; several values one a line,
 * as many whole lines as 64 KiB can hold.
 */
export function environmentOf({ paths, cause }: ActionUpdate): Readonly<Record<string, string>> {
  const keys = paths.flatMap(({ added, changed, removed }) => [...added, ...changed, ...removed]);
  return {
    RW_PATH: lines(paths.map(({ path }) => path)),
    RW_KEYS: lines(keys),
    RW_REVISION: lines(paths.flatMap(({ revision }) => revision ?? [])),
    RW_CAUSE: cause,
  };
}

function lines(values: readonly string[]): string {
  let bytes = 0;
  const fitting = values.filter((value) => (bytes += Buffer.byteLength(value) + 1) <= MAX_VARIABLE_BYTES);
  return fitting.join('\n');
}
