/**
 * How long a difference must stay as it is before it is reported. A swap is whole the moment it is seen, a file that is
 * written in place is whole when nobody writes it any longer, and a target that is gone may be in the gap of a swap.
 *
 * | a file that differs                                 | quiet period                                              |
 * |-----------------------------------------------------|-----------------------------------------------------------|
 * | behind a retargeted link, or new behind that of a   | 0: its bytes were there before the link                   |
 * | volume, unless the link led to nothing for a while  |                                                           |
 * | a new inode, changed after its last byte            | 0: it was complete when it was renamed into place; where  |
 * |                                                     | writes are reported `CONFIRM_MS`, for a writer that       |
 * |                                                     | changes the mode of its file                              |
 * | a new inode, in place of one whose name was never   | `CONFIRM_MS`: the same, within one tick of the clock      |
 * | free, and no write was reported                     |                                                           |
 * | written in place or just created, and empty         | `missingGraceMs`: truncated, and yet to be written        |
 * | written in place or just created                    | `settleMs`                                                |
 * | gone, unless from a new revision                    | `missingGraceMs`                                          |
 *
 * A file that never comes to rest is reported after `maxSettleMs`. In a volume and in a group, which are whole
 * together, the longest period counts. Files of a group behind different links wait `groupSettleMs` for each other,
 * until all these links have been retargeted. At the start there is nothing to keep, so nothing waits but a file that
 * is being written at this moment.
 */
import type { Found, SeenFile } from '../../fs/observation.js';
import type { KeyDifference } from '../change.js';
import type { InPlaceWrites } from './in-place-writes.js';
import type { LastFile, LastReport } from './last-report.js';

/** Within this time the reports of writes to a new file have arrived, ms. */
const CONFIRM_MS = 1;

/** The waiting times, ms. */
export interface QuietPeriodOptions {
  readonly settleMs: number;
  readonly maxSettleMs: number;
  readonly missingGraceMs: number;
  readonly groupSettleMs: number;
}

/** How long a difference must be stable before it is reported, ms, and the maximum total wait. */
export interface QuietPeriod {
  readonly quietMs: number;
  readonly totalMs: number;
}

/** Reported at once. */
export const NO_QUIET_PERIOD: QuietPeriod = { quietMs: 0, totalMs: 0 };

/** For a target that is gone or unreadable; counted from when it was lost, whatever was pending before. */
export function quietPeriodForLoss({ missingGraceMs, maxSettleMs }: QuietPeriodOptions): QuietPeriod {
  return { quietMs: missingGraceMs, totalMs: missingGraceMs + maxSettleMs };
}

function longer(one: QuietPeriod, other: QuietPeriod): QuietPeriod {
  return {
    quietMs: Math.max(one.quietMs, other.quietMs),
    totalMs: Math.max(one.totalMs, other.totalMs),
  };
}

/**
 * For a file that differs from what was reported.
 *
 * @param written whether a write in place was reported; undefined: unknown.
 * @param isRenamed whether it was renamed over the file that was known there, see `InPlaceWrites`.
 */
function quietPeriodForFile(
  seen: SeenFile,
  last: LastFile | undefined,
  isRetargeted: boolean,
  { written, isRenamed }: { readonly written: boolean | undefined; readonly isRenamed: boolean },
  { settleMs, maxSettleMs, missingGraceMs }: QuietPeriodOptions,
): QuietPeriod {
  const isNew = seen.inode !== last?.inode;
  if (seen.steady && isRetargeted) return NO_QUIET_PERIOD;
  if (seen.steady && isNew && seen.finished && written !== true) {
    return { quietMs: written === false ? CONFIRM_MS : 0, totalMs: maxSettleMs };
  }
  if (seen.snapshot.size === 0) return { quietMs: missingGraceMs, totalMs: maxSettleMs };
  if (seen.steady && isNew && isRenamed && written === false)
    return { quietMs: CONFIRM_MS, totalMs: maxSettleMs };
  return { quietMs: settleMs, totalMs: maxSettleMs };
}

/** For a difference at the start. */
export function quietPeriodAtStart(
  files: Found['files'],
  { added }: KeyDifference,
  { settleMs, maxSettleMs }: QuietPeriodOptions,
): QuietPeriod {
  return areWhole(files, added) ? NO_QUIET_PERIOD : { quietMs: settleMs, totalMs: maxSettleMs };
}

function areWhole(files: Found['files'], keys: readonly string[]): boolean {
  // For all files, iterating is faster than a lookup for each key.
  return keys.length < files.size ? keys.every((key) => files.get(key)?.steady) : areSteady(files);
}

function areSteady(files: Found['files']): boolean {
  for (const { steady } of files.values()) if (!steady) return false;
  return true;
}

/** For each part of the difference between what was found and what was last reported. */
export function quietPeriodsFor(
  seen: Found,
  last: LastReport,
  writes: InPlaceWrites,
  options: QuietPeriodOptions,
): (part: KeyDifference) => QuietPeriod {
  const isSwapped = isDirectory(seen) && last.isRetargeted(seen.chain.links, last.links);
  // Of all files, so it is found out once for all parts.
  if (isSwapped && areSteady(seen.files)) return () => NO_QUIET_PERIOD;
  return (part) => quietPeriodForPart(seen, part, isSwapped, last, writes, options);
}

function quietPeriodForPart(
  seen: Found,
  { added, changed, removed }: KeyDifference,
  isSwapped: boolean,
  last: LastReport,
  writes: InPlaceWrites,
  options: QuietPeriodOptions,
): QuietPeriod {
  let quietPeriod = removed.length > 0 && !isSwapped ? quietPeriodForLoss(options) : NO_QUIET_PERIOD;
  for (const key of removed) {
    const path = last.pathOf(key);
    if (path !== undefined) writes.gone(path);
  }
  for (const key of [...added, ...changed]) {
    const file = seen.files.get(key);
    if (!file) continue;
    const { realPath } = file.snapshot;
    const isKnownHere = last.pathOf(key) === realPath;
    const reported = {
      written: writes.isWritten(realPath),
      isRenamed: isKnownHere && writes.isRenamed(realPath),
    };
    const known = last.file(key);
    // A new file of a directory is behind the same links as the others.
    const isRetargeted =
      (known !== undefined || file.links !== last.links) && last.isRetargeted(file.links, known?.links);
    const own = quietPeriodForFile(file, known, isRetargeted, reported, options);
    if (own !== NO_QUIET_PERIOD) quietPeriod = longer(quietPeriod, own);
  }
  const { groupSettleMs } = options;
  return seen.snapshot.kind === 'group' && isPartlyRetargeted(seen, last)
    ? longer(quietPeriod, { quietMs: groupSettleMs, totalMs: groupSettleMs })
    : quietPeriod;
}

/** Whether some of the links that lead to a group's files were retargeted, and some were not. */
function isPartlyRetargeted({ files }: Found, last: LastReport): boolean {
  let kept = false;
  let retargeted = false;
  for (const [key, { links }] of files) {
    if (links === '') continue;
    if (last.file(key)?.links === links) kept = true;
    else retargeted = true;
  }
  return retargeted && kept;
}

/** Whether its files are behind the links of the target, unless a file has links of its own. */
function isDirectory({ snapshot: { kind } }: Found): boolean {
  return kind === 'volume' || kind === 'tree' || kind === 'directory';
}
