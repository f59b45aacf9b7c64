/**
 * When a difference may be reported. A swap is whole the moment it is seen; a file written in place is whole
 * when it has gone quiet; a target that is gone may be in the gap of a swap.
 *
 * | what is seen                                  | it must have been seen unchanged for        |
 * |-----------------------------------------------|---------------------------------------------|
 * | a file behind a retargeted link               | 0: its bytes were there before the link     |
 * | a new inode changed after its last byte       | 0: it was renamed into place when complete; |
 * |                                               | `CONFIRM_MS` where writes are told: a writer |
 * |                                               | that re-modes its file is told of by then   |
 * | a new inode, and nobody was seen writing it   | `CONFIRM_MS`: the same, within one clock tick |
 * | a file written in place, or just created      | `settleMs`, and `maxSettleMs` at the most   |
 * | the same, and empty                           | `missingGraceMs`: truncated, not yet written |
 * | nothing, or something unreadable              | `missingGraceMs`                            |
 *
 * Only files that differ count. In a tree and in a plain directory each counts for itself; of a volume or a
 * group, which are whole together, the one that takes longest counts. A file that is gone from a new revision needs none. Files of a group that lie behind different links wait `groupSettleMs` for each other,
 * until all these links have been retargeted.
 */
import type { SeenFile } from '../fs/observation.js';

/**
 * A file created in place tells of its writes right after its creation; what was said within that time has arrived, ms.
 */
const CONFIRM_MS = 1;

/** The waiting times, ms. */
export interface QuietPeriodOptions {
  readonly settleMs: number;
  readonly maxSettleMs: number;
  readonly missingGraceMs: number;
  readonly groupSettleMs: number;
}

/** How long something must stay as it is before it is reported, ms, and how long that may take altogether. */
export interface QuietPeriod {
  readonly quietMs: number;
  readonly totalMs: number;
}

/** Reported at once. */
export const NO_QUIET_PERIOD: QuietPeriod = { quietMs: 0, totalMs: 0 };

/** For what is gone or unreadable; counted from when it was lost, whatever was in pending before. */
export function quietPeriodForLoss({ missingGraceMs, maxSettleMs }: QuietPeriodOptions): QuietPeriod {
  return { quietMs: missingGraceMs, totalMs: missingGraceMs + maxSettleMs };
}

/** The longer of the two. */
export function longer(one: QuietPeriod, other: QuietPeriod): QuietPeriod {
  return {
    quietMs: Math.max(one.quietMs, other.quietMs),
    totalMs: Math.max(one.totalMs, other.totalMs),
  };
}

/** What was known of the file when it was last seen. */
export interface LastFile {
  /** The links that led to it, see `LinkChain.links`. */
  readonly links: string;
  /** Which file it was, see `SeenFile.inode`; undefined for one that was not there. */
  readonly inode: string | undefined;
}

/**
 * For a file that differs from what was reported.
 *
 * @param written whether it was seen being written in place; undefined when the backend cannot tell.
 */
export function quietPeriodFor(
  seen: SeenFile,
  last: LastFile | undefined,
  written: boolean | undefined,
  { settleMs, maxSettleMs, missingGraceMs }: QuietPeriodOptions,
): QuietPeriod {
  const retargeted = seen.links !== (last?.links ?? '');
  const arrived = seen.inode !== last?.inode;
  if (seen.steady && retargeted) return NO_QUIET_PERIOD;
  if (seen.steady && arrived && seen.finished && written !== true) {
    return { quietMs: written === false ? CONFIRM_MS : 0, totalMs: maxSettleMs };
  }
  if (seen.snapshot.size === 0) return { quietMs: missingGraceMs, totalMs: maxSettleMs };
  if (seen.steady && arrived && written === false) return { quietMs: CONFIRM_MS, totalMs: maxSettleMs };
  return { quietMs: settleMs, totalMs: maxSettleMs };
}
