import type { FileState, Snapshot } from '../fs/snapshot.js';

/** The reason of a check: the name of the backend that gave a hint, or one of the watcher's own reasons. */
export type ChangeCause = 'start' | 'fs' | 'parcel' | 'poll' | 'resync' | 'restart' | 'check' | (string & {});

/** The first cause, or one that explains a change better: a resync is to find what no event has reported. */
export function betterCause<Cause extends string>(first: Cause, other: Cause | undefined): Cause {
  return first === 'resync' && other !== undefined ? other : first;
}

/** Which keys of one set of files differ from those of another. */
export interface KeyDifference {
  /** The keys that are only in the later set. */
  readonly added: readonly string[];
  /** The keys whose files differ. */
  readonly changed: readonly string[];
  /** The keys that are only in the earlier set. */
  readonly removed: readonly string[];
}

/**
 * Two states of the target that differ, and the files in which they do: keys of `previous.files` and `current.files`. If
 * only the kind of the target differs, they are none.
 */
export interface Change extends KeyDifference {
  /** The state that was last reported; in the first report a `MissingSnapshot`. */
  readonly previous: Snapshot;
  /** The state that is now reported. */
  readonly current: Snapshot;
  /** The reason of the check that first found the difference; if that was a resync, of a hint that came before the report. */
  readonly cause: ChangeCause;
}

/** Compares two sets of files under these keys; all other keys are known to be equal. */
export function differenceOf<Before, After>(
  before: ReadonlyMap<string, Before>,
  after: ReadonlyMap<string, After>,
  keys: Iterable<string>,
  isSame: (before: Before, after: After) => boolean,
): KeyDifference {
  const difference = new DifferenceDraft();
  for (const key of keys) difference.compare(key, before.get(key), after.get(key), isSame);
  return difference;
}

/** A difference in the making. */
export class DifferenceDraft implements KeyDifference {
  readonly added: string[] = [];
  readonly changed: string[] = [];
  readonly removed: string[] = [];

  /** @param before undefined: it was not there. @param after undefined: it is not there. */
  compare<Before, After>(
    key: string,
    before: Before | undefined,
    after: After | undefined,
    isSame: (before: Before, after: After) => boolean,
  ): void {
    if (before === undefined) {
      if (after !== undefined) this.added.push(key);
    } else if (after === undefined) this.removed.push(key);
    else if (!isSame(before, after)) this.changed.push(key);
  }
}

/** Merges a change that was not taken yet with the next one; undefined if together they change nothing. */
export function mergeChanges(waiting: Change, next: Change): Change | undefined {
  const { previous } = waiting;
  const { current, cause } = next;
  // Nothing has changed under other keys. The digests of the sets would take the digest of every file.
  const keys = new Set([...keysOf(waiting), ...keysOf(next)]);
  const difference = differenceOf(previous.files, current.files, keys, haveSameDigest);
  const isBack = previous.kind === current.kind && isEmpty(difference);
  return isBack ? undefined : { previous, current, cause, ...difference };
}

/** The digest of each file by its key: plain data, to be saved and compared later. */
export type Digests = Readonly<Record<string, string>>;

/** The digests of a snapshot. */
export function digestsOf({ files }: Snapshot): Digests {
  return Object.fromEntries([...files].map(([key, { digest }]) => [key, digest]));
}

/** What differs between saved digests and a snapshot. */
export function differenceSince(digests: Digests, { files }: Snapshot): KeyDifference {
  const before = new Map(Object.entries(digests));
  const keys = new Set([...before.keys(), ...files.keys()]);
  return differenceOf(before, files, keys, (digest, file) => digest === file.digest);
}

/** Whether no key differs. */
export function isEmpty({ added, changed, removed }: KeyDifference): boolean {
  return added.length === 0 && changed.length === 0 && removed.length === 0;
}

/** All keys that differ. */
export function keysOf({ added, changed, removed }: KeyDifference): string[] {
  return [...added, ...changed, ...removed];
}

function haveSameDigest(one: FileState, other: FileState): boolean {
  return one.digest === other.digest;
}
