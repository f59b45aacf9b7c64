/** How long a difference must stay as it is before it is reported; the table is at the head of reporter.ts. */
import type { SeenFile } from '../../fs/observation.js';

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

/** The longer of the two. */
export function longer(one: QuietPeriod, other: QuietPeriod): QuietPeriod {
  return {
    quietMs: Math.max(one.quietMs, other.quietMs),
    totalMs: Math.max(one.totalMs, other.totalMs),
  };
}

/** What was known of a file when it was last seen. */
export interface LastFile {
  /** The links that led to it, see `LinkChain.links`. */
  readonly links: string;
  /** Identifies the file, see `SeenFile.inode`; undefined: it was not there. */
  readonly inode: string | undefined;
}

/**
 * For a file that differs from what was reported.
 *
 * @param written whether a write in place was reported; undefined: unknown.
 */
export function quietPeriodFor(
  seen: SeenFile,
  last: LastFile | undefined,
  written: boolean | undefined,
  { settleMs, maxSettleMs, missingGraceMs }: QuietPeriodOptions,
): QuietPeriod {
  const isRetargeted = seen.links !== (last?.links ?? '');
  const isNew = seen.inode !== last?.inode;
  if (seen.steady && isRetargeted) return NO_QUIET_PERIOD;
  if (seen.steady && isNew && seen.finished && written !== true) {
    return { quietMs: written === false ? CONFIRM_MS : 0, totalMs: maxSettleMs };
  }
  if (seen.snapshot.size === 0) return { quietMs: missingGraceMs, totalMs: maxSettleMs };
  if (seen.steady && isNew && written === false) return { quietMs: CONFIRM_MS, totalMs: maxSettleMs };
  return { quietMs: settleMs, totalMs: maxSettleMs };
}
