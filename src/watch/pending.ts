/**
 * Pending differences, which were seen but are not reported yet.
 *
 * | a look sees                      | then                                                                     |
 * |----------------------------------|--------------------------------------------------------------------------|
 * | a difference for the first time  | it is due after its quiet period                                         |
 * | the same one again               | nothing                                                                  |
 * | it again, but it looks different | its quiet period begins again; it is due at the latest after its maximum |
 * | that the file is gone            | the same, but there is no maximum: only what is there can be reported as |
 * |                                  | it stands                                                                |
 * | no difference any more           | it is forgotten, unless it is seen again within `missingGraceMs`; only a |
 * |                                  | file that was not touched meanwhile has been quiet since it was seen     |
 */
import { slices, type Steps } from '../core/scheduling/steps.js';
import { isSameInode, isUnchanged } from '../fs/file-identity.js';
import { FileSnapshot } from '../fs/snapshot.js';
import { mergeCauses, type ChangeCause } from './change.js';

/** What a difference looks like: the file, or how it is gone, or why it cannot be read. */
type Appearance = FileSnapshot | string | undefined;

/** How long a difference waits. */
export interface Wait {
  /** How long it must stay the same, ms. */
  readonly quietMs: number;
  /** When it is reported at the latest, ms after it was first seen. */
  readonly maxMs: number;
  /** The same of a file that was replaced meanwhile, and never written in place. Default: `maxMs`. */
  readonly maxReplacedMs?: number;
}

export const NO_WAIT: Wait = { quietMs: 0, maxMs: 0 };

/** `either`: the inode does not tell which. */
type Modification = 'replaced' | 'written' | 'either';

/** A pending difference, or one that has vanished. Times are monotonic ms. */
export interface Pending {
  /** See `mergeCauses`. */
  readonly cause: ChangeCause;
  readonly appearance: Appearance;
  /** See `Look.number`. */
  readonly firstLook: number;
  /** Of a file that was empty: when it no longer was. */
  readonly firstSeen: number;
  readonly unchangedSince: number;
  readonly dueAt: number;
  /** How the file was modified since it was first seen. Once written in place, it stays `written`. */
  readonly modified: Modification | undefined;
  /** When it was no longer seen; undefined while it is pending. */
  readonly vanishedAt?: number;
}

/** A look that sees differences. Times are monotonic ms. */
export interface Look {
  readonly cause: ChangeCause;
  /** The same for all rounds of a look: another one follows when it consults new directories. */
  readonly number: number;
  readonly beganAt: number;
  /** When it ended. */
  readonly now: number;
}

/** When what came due during a look is looked at again, ms after that has ended. */
export const POSTPONED_MS = 1;

/** A look sees a difference. @param before the same one, if it was pending. */
export function seenAgain(
  before: Pending | undefined,
  appearance: Appearance,
  { quietMs, maxMs, maxReplacedMs = maxMs }: Wait,
  { cause, number, beganAt, now }: Look,
): Pending {
  const firstSeen = before && !isFirstVersion(before, appearance) ? before.firstSeen : now;
  // Only of a file, inode and timestamps show that nothing happened while it was not seen.
  const isKnown = before?.vanishedAt === undefined || typeof appearance === 'object';
  const isSame = before !== undefined && isKnown && looksSame(before.appearance, appearance);
  const unchangedSince = isSame ? before.unchangedSince : now;
  const change = isSame ? undefined : changeOf(before?.appearance, appearance);
  const modified = before?.modified === 'written' ? before.modified : (change ?? before?.modified);
  const latestMs = modified === 'replaced' ? maxReplacedMs : maxMs;
  let dueAt = Math.min(unchangedSince + quietMs, firstSeen + latestMs);
  // If its time came during this look, it may have changed since it was seen: another look decides.
  if (quietMs > 0 && beganAt < dueAt && dueAt <= now) dueAt = now + POSTPONED_MS;
  return {
    cause: mergeCauses(before?.cause ?? cause, cause),
    appearance,
    firstLook: before?.firstLook ?? number,
    firstSeen,
    unchangedSince,
    dueAt,
    modified,
  };
}

/** Whether the file had been empty so far, which is no version yet: who writes the first one may just have begun. */
function isFirstVersion({ appearance: before, modified }: Pending, appearance: Appearance): boolean {
  if (typeof before !== 'object' || typeof appearance !== 'object') return false;
  return modified === undefined && before.size === 0 && appearance.size > 0;
}

/** What has happened to a file. */
function changeOf(one: Appearance, other: Appearance): Modification | undefined {
  if (typeof one !== 'object' || typeof other !== 'object') return undefined;
  const [before, after] = [FileSnapshot.stampOf(one).inode, FileSnapshot.stampOf(other).inode];
  // Only who replaces one version after another is told while it goes on.
  if (!isSameInode(before, after)) return before.size === 0n ? undefined : 'replaced';
  // An unlink changes the inode, too.
  if (before.mtimeNs === after.mtimeNs && before.size === after.size) return undefined;
  // If nothing happened to it after the tick that created it, it may have been replaced in that tick, and its number reused.
  return before.ctimeNs === before.birthtimeNs ? 'either' : 'written';
}

/**
 * The differences that are no longer seen, for as long as `memoryMs`.
 * @param before those that had vanished, and then those that were pending.
 */
export function* vanishedOf(
  before: readonly ReadonlyMap<string, Pending>[],
  isSeen: (key: string) => boolean,
  memoryMs: number,
  now: number,
): Steps<ReadonlyMap<string, Pending>> {
  const vanished = new Map<string, Pending>();
  for (const pendings of before) {
    const slice = slices();
    for (const [key, pending] of pendings) {
      yield* slice();
      if (isSeen(key)) continue;
      const gone = { vanishedAt: now, ...pending };
      if (remembered(gone, memoryMs, now)) vanished.set(key, gone);
    }
  }
  return vanished;
}

/** One that has vanished, unless it is forgotten by now. */
export function remembered(
  vanished: Pending | undefined,
  memoryMs: number,
  now: number,
): Pending | undefined {
  return now - (vanished?.vanishedAt ?? -Infinity) < memoryMs ? vanished : undefined;
}

function looksSame(one: Appearance, other: Appearance): boolean {
  if (one === other || typeof one !== 'object' || typeof other !== 'object') return one === other;
  const isSame = isUnchanged(FileSnapshot.stampOf(one).inode, FileSnapshot.stampOf(other).inode);
  return isSame && FileSnapshot.haveSameContent(one, other);
}

/** Whether each of these is so, without a copy of them. */
export function isEach<T>(these: Iterable<T>, isSo: (each: T) => boolean): boolean {
  for (const each of these) if (!isSo(each)) return false;
  return true;
}

/** What is due, and when the rest is due, monotonic ms; `Infinity` if there is none. */
export interface Due {
  readonly due: readonly string[];
  readonly next: number;
}

/**
 * Each difference by itself: one that is due waits for the others, so that files that change together are one change;
 * but what a call of `add` or `remove` has changed does not wait. Differences of one volume are due together.
 */
export function* dueEach(
  pending: ReadonlyMap<string, Pending>,
  togetherMs: number,
  volumesOf: (key: string) => readonly string[],
  isRegrouped: (key: string) => boolean,
  { beganAt, now }: Look,
): Steps<Due> {
  const dueOf = yield* duesOf(pending, volumesOf);
  const areAllDue = isEach(pending.values(), ({ dueAt }) => dueAt <= now);
  const due: string[] = [];
  let next = Infinity;
  const slice = slices();
  for (const [key, own] of pending) {
    yield* slice();
    const dueAt = dueOf(key, own);
    const isWaiting = togetherMs > 0 && !areAllDue && dueAt <= now && !isRegrouped(key);
    const reportAt = isWaiting ? dueAt + togetherMs : dueAt;
    // The others may have come due during this look, see `seenAgain`.
    if (reportAt <= (isWaiting ? beganAt : now)) due.push(key);
    else next = Math.min(next, reportAt);
  }
  return { due, next };
}

/** When the differences of each volume are due: what belongs to two volumes is due with both. */
function* duesOf(
  pending: ReadonlyMap<string, Pending>,
  volumesOf: (key: string) => readonly string[],
): Steps<(key: string, own: Pending) => number> {
  const dues = new Map<string, number>();
  const dueOf = (key: string, { dueAt }: Pending): number =>
    Math.max(dueAt, ...volumesOf(key).map((volume) => dues.get(volume) ?? dueAt));
  // Until it is the latest of all volumes that keys connect.
  for (let isLater = true; isLater;) {
    isLater = false;
    const slice = slices();
    for (const [key, own] of pending) {
      yield* slice();
      const dueAt = dueOf(key, own);
      for (const volume of volumesOf(key)) {
        if (dues.get(volume) === dueAt) continue;
        dues.set(volume, dueAt);
        isLater = true;
      }
    }
  }
  return dueOf;
}

/**
 * For the first report: nothing is due before everything that the first look has seen, except what has been written in
 * place since. What is due by then is reported with it. Differences of one volume are due together.
 */
export function* dueAtFirst(
  pending: ReadonlyMap<string, Pending>,
  volumesOf: (key: string) => readonly string[],
  now: number,
): Steps<Due> {
  const dueOf = yield* duesOf(pending, volumesOf);
  let [firstLook, firstDue, next] = [Infinity, 0, Infinity];
  for (const own of pending.values()) firstLook = Math.min(firstLook, own.firstLook);
  const due: string[] = [];
  const slice = slices();
  for (const [key, own] of pending) {
    yield* slice();
    const dueAt = dueOf(key, own);
    if (own.firstLook === firstLook && own.modified !== 'written') firstDue = Math.max(firstDue, dueAt);
    if (dueAt <= now) due.push(key);
    else next = Math.min(next, dueAt);
  }
  return firstDue > now ? { due: [], next: firstDue } : { due, next };
}

/** Reports everything when the last difference is due; keys dropped by `remove()` at once. */
export function dueTogether(
  pending: ReadonlyMap<string, Pending>,
  othersAt: number,
  isRemoved: (key: string) => boolean,
  now: number,
): Due {
  const keys = [...pending.keys()];
  const next = [...pending.values()].reduce((latest, { dueAt }) => Math.max(latest, dueAt), othersAt);
  return next <= now ? { due: keys, next: Infinity } : { due: keys.filter(isRemoved), next };
}
