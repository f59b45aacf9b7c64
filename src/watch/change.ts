import { atOnce, runNow, type Steps } from '../core/scheduling/steps.js';
import { differing } from '../fs/file-map.js';
import { FileSnapshot, type Snapshot } from '../fs/snapshot.js';
import type { BackendName } from './backends/catalog.js';

/** The reason for a check: the name of the backend that gave a hint, or one of the watcher's own reasons. */
export type ChangeCause =
  Exclude<BackendName, 'auto'> | 'start' | 'resync' | 'restart' | 'check' | (string & {});

/** The cause to report: the first one, except that a resync is reported only if there is no other. */
export function mergeCauses<Cause extends string>(first: Cause, other: Cause | undefined): Cause {
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
 * Two states of the target, and the keys of `previous.files` and `current.files` that differ. If only the kind of the
 * target differs, there are no such keys.
 */
export interface Change extends KeyDifference {
  /** The state that was last reported; in the first report, a `MissingSnapshot`. */
  readonly previous: Snapshot;
  /** The state that is now reported. */
  readonly current: Snapshot;
  /** The reason for the check that found the difference; a resync only if no hint came before the report. */
  readonly cause: ChangeCause;
}

const NO_KEYS: readonly string[] = Object.freeze([]);

/** Compares two sets by key. @param found receives what only the later one has, also if it is the same in another revision. */
export function* compare<Before, After>(
  before: ReadonlyMap<string, Before>,
  after: ReadonlyMap<string, After>,
  isSame: (before: Before, after: After) => boolean,
  found: After[],
  slice: () => Steps<void>,
): Steps<KeyDifference> {
  const [added, changed, removed]: [string[], string[], string[]] = [[], [], []];
  for (const [key, known, now] of differing(before, after)) {
    yield* slice();
    if (now === undefined) removed.push(key);
    else {
      found.push(now);
      if (known === undefined) added.push(key);
      else if (!isSame(known, now)) changed.push(key);
    }
  }
  return { added: kept(added), changed: kept(changed), removed: kept(removed) };
}

/** A copy without the spare capacity of an array that was pushed to: a change is kept until the next one. */
function kept(keys: readonly string[]): readonly string[] {
  return keys.length === 0 ? NO_KEYS : keys.slice();
}

function differenceOf<Before, After>(
  before: ReadonlyMap<string, Before>,
  after: ReadonlyMap<string, After>,
  isSame: (before: Before, after: After) => boolean,
): KeyDifference {
  return runNow(compare(before, after, isSame, [], atOnce));
}

/** Merges a change that was not consumed yet with the next one; undefined if together they change nothing. */
export function mergeChanges({ previous }: Change, { current, cause }: Change): Change | undefined {
  const difference = differenceOf(previous.files, current.files, FileSnapshot.haveSameContent);
  const isBack = previous.kind === current.kind && isEmpty(difference);
  return isBack ? undefined : { previous, current, cause, ...difference };
}

/** The digest of each file by its key, as plain data to save and compare later. */
export type Digests = Readonly<Record<string, string>>;

/** The digests of a snapshot. */
export function digestsOf({ files }: Snapshot): Digests {
  return Object.fromEntries([...files].map(([key, { digest }]) => [key, digest]));
}

/** What differs between saved digests and a snapshot. */
export function differenceSince(digests: Digests, { files }: Snapshot): KeyDifference {
  return differenceOf(new Map(Object.entries(digests)), files, (digest, file) => digest === file.digest);
}

/** Whether no key differs. */
export function isEmpty({ added, changed, removed }: KeyDifference): boolean {
  return added.length === 0 && changed.length === 0 && removed.length === 0;
}

/** The keys among these that `keep` accepts. */
export function filterKeys(
  { added, changed, removed }: KeyDifference,
  keep: (key: string) => boolean,
): KeyDifference {
  return { added: added.filter(keep), changed: changed.filter(keep), removed: removed.filter(keep) };
}

/** All keys that differ. */
export function keysOf({ added, changed, removed }: KeyDifference): string[] {
  return [...added, ...changed, ...removed];
}
