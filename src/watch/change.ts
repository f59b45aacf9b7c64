import type { FileState, Snapshot } from '../fs/snapshot.js';

/** Why a check was taken: a backend's name, or one of the watcher's own reasons. */
export type ChangeCause = 'start' | 'fs' | 'parcel' | 'poll' | 'resync' | 'restart' | 'check' | (string & {});

/** Which keys of one set of files differ from those of another. */
export interface KeyDifference {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

/** Two states of the target that differ, and in which files: the keys of `previous.files` and `current.files`. */
export interface Change extends KeyDifference {
  /** What was last reported; at the first report a `MissingSnapshot`. */
  readonly previous: Snapshot;
  readonly current: Snapshot;
  /** What made the watcher look when it first saw the difference. */
  readonly cause: ChangeCause;
}

/** Compares two sets of files under these keys; under all others they are known to be the same. */
export function differenceOf<Before, After>(
  before: ReadonlyMap<string, Before>,
  after: ReadonlyMap<string, After>,
  keys: Iterable<string>,
  isSame: (before: Before, after: After) => boolean,
): KeyDifference {
  const added: string[] = [];
  const changed: string[] = [];
  const removed: string[] = [];
  for (const key of keys) {
    const earlier = before.get(key);
    const file = after.get(key);
    if (earlier === undefined && file !== undefined) added.push(key);
    else if (earlier !== undefined && file === undefined) removed.push(key);
    else if (earlier !== undefined && file !== undefined && !isSame(earlier, file)) changed.push(key);
  }
  return { added, changed, removed };
}

/** Two changes of which the first was not taken yet; nothing when they lead back to where it began. */
export function mergeChanges(waiting: Change, next: Change): Change | undefined {
  const { previous } = waiting;
  const { current, cause } = next;
  // Under no other key has anything changed. To compare the sets by their digests would take that of every file.
  const keys = new Set([...keysOf(waiting), ...keysOf(next)]);
  const difference = differenceOf(previous.files, current.files, keys, haveSameDigest);
  const isBack = previous.kind === current.kind && keysOf(difference).length === 0;
  return isBack ? undefined : { previous, current, cause, ...difference };
}

/** All keys that differ. */
export function keysOf({ added, changed, removed }: KeyDifference): string[] {
  return [...added, ...changed, ...removed];
}

function haveSameDigest(one: FileState, other: FileState): boolean {
  return one.digest === other.digest;
}
