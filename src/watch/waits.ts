/**
 * How long a difference waits before it is reported.
 *
 * | the difference                                       | waits                                                      |
 * |------------------------------------------------------|------------------------------------------------------------|
 * | a file that is complete, see `isComplete`            | not at all                                                 |
 * | a file in the first report or added by `add` that    | not at all                                                 |
 * | was not written for longer, see `hasRested`          |                                                            |
 * | a file in a volume whose keys are still being        | for the others: `settleMs`, `groupSettleMs` in a group     |
 * | linked, or one that a swap has removed there         |                                                            |
 * | an empty file                                        | `missingGraceMs`                                           |
 * | any other file                                       | `settleMs`                                                 |
 * | a file or target that is gone                        | `missingGraceMs`; not at all if it was removed by `remove` |
 * |                                                      | or by a swap                                               |
 */
import { slices, type Steps } from '../core/scheduling/steps.js';
import { hasRested, isSameInode } from '../fs/file-identity.js';
import type { Observation } from '../fs/observation.js';
import { FileSnapshot, type Files, type SetSnapshot, type Snapshot } from '../fs/snapshot.js';
import type { KeyDifference } from './change.js';
import { NO_WAIT, type Wait } from './pending.js';

/** The observation of a target that can be read, or is missing. */
export type SeenFiles = Exclude<Observation, { kind: 'unstable' | 'unreadable' }>;

export interface WaitOptions {
  readonly settleMs: number;
  readonly maxSettleMs: number;
  readonly missingGraceMs: number;
  readonly groupSettleMs: number;
}

/** What an observation differs from. */
interface Before {
  /** What was last reported. */
  readonly snapshot: Snapshot;
  readonly files: Files;
  /** Whether that is only the assumption that nothing was there. */
  readonly isAssumed: boolean;
  /** The keys that `add` and `remove` have changed and that are not reported yet. */
  readonly regrouped: ReadonlySet<string>;
}

/**
 * How long a first report waits for a file that is replaced all the time, ms. Most versions show that they are
 * complete, and the first one is reported; one that was written and renamed within one tick of the file system's clock
 * does not show it.
 */
const MAX_FIRST_WAIT_MS = 500;

/** The key of a difference in the kind of target: the key of a file never begins with a slash. */
export const KIND = '/kind';

const NO_REVISIONS: ReadonlyMap<string, string | undefined> = new Map();

/**
 * How long each difference waits, by key.
 * @param found the files that are not those of before.
 * @param seenAt when the look began, epoch ms.
 */
export function* waitsFor(
  seen: SeenFiles,
  snapshot: Snapshot,
  files: Files,
  { added, changed, removed }: KeyDifference,
  found: readonly FileSnapshot[],
  before: Before,
  seenAt: number,
  options: WaitOptions,
): Steps<Map<string, Wait>> {
  const waits = new Map<string, Wait>();
  const { files: known } = before;
  const isOtherKind = snapshot.kind !== before.snapshot.kind;
  const isMissing = snapshot.kind === 'missing';
  if (isOtherKind || (before.isAssumed && seen.kind === 'missing' && seen.isGap)) {
    const isTakenOut = removed.length > 0 && removed.every((key) => before.regrouped.has(key));
    // A group is no more than its members, and each of them waits: `remove` may have taken out the others only now.
    const isLoss = isMissing && !isTakenOut && before.snapshot.kind !== 'group';
    waits.set(KIND, isLoss ? waitForLoss(options) : NO_WAIT);
  }
  const isReplaced = isOtherKind && before.snapshot.kind !== 'missing';
  const slice = slices();
  for (const key of isReplaced ? files.keys() : added.concat(changed)) {
    yield* slice();
    const file = files.get(key);
    const isFirst = before.isAssumed || before.regrouped.has(key);
    if (file) waits.set(key, waitForFile(file, known.get(key), isFirst, seen, seenAt, options));
  }
  if (removed.length === 0) return waits;
  const isElsewhere = !isMissing && isRetargeted(before.snapshot, snapshot);
  const revisions = isElsewhere ? NO_REVISIONS : revisionsIn(found);
  for (const key of removed) {
    yield* slice();
    const file = known.get(key);
    const forSwap = isSwapped(file, revisions) ? (waitForLinks(file, seen, options) ?? NO_WAIT) : undefined;
    const isOver = isElsewhere || before.regrouped.has(key);
    waits.set(key, isOver ? NO_WAIT : (forSwap ?? waitForLoss(options)));
  }
  return waits;
}

/** How long a file that is new or has changed waits. */
function waitForFile(
  file: FileSnapshot,
  before: FileSnapshot | undefined,
  isFirst: boolean,
  seen: SeenFiles,
  seenAt: number,
  options: WaitOptions,
): Wait {
  const { settleMs, missingGraceMs, maxSettleMs: maxMs } = options;
  const { isSteady, inode } = FileSnapshot.stampOf(file);
  const forLinks = waitForLinks(file, seen, options);
  if (forLinks) return forLinks;
  const quietMs = file.size === 0 && isSteady ? missingGraceMs : settleMs;
  const isQuiet = isFirst && isSteady && hasRested(inode, seenAt, quietMs);
  const wait = { quietMs: isQuiet || isComplete(file, before) ? 0 : quietMs, maxMs };
  return isFirst && file.size > 0 ? { ...wait, maxReplacedMs: Math.min(maxMs, MAX_FIRST_WAIT_MS) } : wait;
}

/** How long what comes, or came, from a volume waits for others whose links are on their way. */
function waitForLinks(
  file: FileSnapshot | undefined,
  seen: SeenFiles,
  { settleMs, groupSettleMs, maxSettleMs: maxMs }: WaitOptions,
): Wait | undefined {
  const volume = volumeOf(file);
  if (seen.kind !== 'found' || volume === undefined || !seen.unlinked?.has(volume)) return undefined;
  return { quietMs: seen.snapshot.kind === 'group' ? groupSettleMs : settleMs, maxMs };
}

/** How long it waits that something is gone. There is no maximum: only what is there can be reported as it stands. */
function waitForLoss({ missingGraceMs }: WaitOptions): Wait {
  return { quietMs: missingGraceMs, maxMs: Infinity };
}

/** Whether the files come from another revision or directory, so that a file that is gone is not in a gap. */
function isRetargeted(before: Snapshot, { kind, realPath }: FileSnapshot | SetSnapshot): boolean {
  if (before.kind === 'missing' || before.realPath === realPath || kind === 'group') return false;
  return kind === 'volume' || kind === before.kind;
}

/** The revision of each volume that these files come from. */
function revisionsIn(files: readonly FileSnapshot[]): ReadonlyMap<string, string | undefined> {
  const revisions = new Map<string, string | undefined>();
  for (const file of files) {
    const volume = volumeOf(file);
    if (volume !== undefined) revisions.set(volume, file.revision);
  }
  return revisions;
}

/** Whether the volume that a file came from has another revision by now. */
function isSwapped(
  file: FileSnapshot | undefined,
  revisions: ReadonlyMap<string, string | undefined>,
): boolean {
  const volume = volumeOf(file);
  return volume !== undefined && revisions.has(volume) && revisions.get(volume) !== file?.revision;
}

/**
 * Whether a file is complete, that is, whether its last write came before it was published.
 *
 * | the file                                                  | was published by                                      |
 * |-----------------------------------------------------------|-------------------------------------------------------|
 * | is in another revision of a volume than before            | the swap: nobody writes into a revision after it      |
 * | is older than the last link that leads to it, and was not | the process that retargeted that link                 |
 * | behind these links before                                 |                                                       |
 * | is a new file, older than the last change of its inode,   | a rename: `chmod` changes the inode, too, but not the |
 * | which came at the same time as a change of its directory  | directory                                             |
 *
 * Within one tick of the file system's clock (up to 10 ms), before and after cannot be distinguished. Neither can a
 * rename and a `chmod` if something else in the directory has changed since.
 *
 * @param before the file that was last reported under its key.
 */
export function isComplete(file: FileSnapshot, before: FileSnapshot | undefined): boolean {
  const { isSteady, isOlderThanLinks, isRenamed, links, inode } = FileSnapshot.stampOf(file);
  if (!isSteady) return false;
  if (file.revision !== undefined && file.revision !== before?.revision) return true;
  if (file.size === 0) return false;
  const known = before && FileSnapshot.stampOf(before);
  if (isOlderThanLinks && links !== known?.links) return true;
  return isRenamed && (!known || !isSameInode(inode, known.inode));
}

/** Whether some links of a group were retargeted and others were not: the others are probably about to be. */
export function isPartlyRetargeted(before: Files, after: Files): boolean {
  let isAnyKept = false;
  let isAnyRetargeted = false;
  for (const [key, file] of after) {
    const { links } = FileSnapshot.stampOf(file);
    const known = before.get(key);
    if (links === '' || !known) continue;
    if (FileSnapshot.stampOf(known).links === links) isAnyKept = true;
    else isAnyRetargeted = true;
  }
  return isAnyKept && isAnyRetargeted;
}

/** The volume that a file comes from: what it contains is reported together. */
export function volumeOf(file: FileSnapshot | undefined): string | undefined {
  return file && FileSnapshot.stampOf(file).volume;
}
