import type { FileState, Snapshot } from '../snapshot.js';

/** Why a look was taken: a backend's name, or one of the watcher's own reasons. */
export type ChangeCause =
  'start' | 'fs' | 'parcel' | 'poll' | 'backstop' | 'restart' | 'check' | (string & {});

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

/** Compares two sets of files by key. */
export function differenceOf<Before, After>(
  before: ReadonlyMap<string, Before>,
  after: ReadonlyMap<string, After>,
  isSame: (before: Before, after: After) => boolean,
): KeyDifference {
  const added: string[] = [];
  const changed: string[] = [];
  for (const [key, file] of after) {
    const earlier = before.get(key);
    if (earlier === undefined) added.push(key);
    else if (!isSame(earlier, file)) changed.push(key);
  }
  const removed = [...before.keys()].filter((key) => !after.has(key));
  return { added, changed, removed };
}

/** Two changes of which the first was not taken yet; nothing when they lead back to where it began. */
export function mergeChanges(waiting: Change, next: Change): Change | undefined {
  const { previous } = waiting;
  const { current, cause } = next;
  if (previous.digest === current.digest) return undefined;
  return { previous, current, cause, ...differenceOf(previous.files, current.files, haveSameDigest) };
}

function haveSameDigest(one: FileState, other: FileState): boolean {
  return one.digest === other.digest;
}
