import type { GroupName } from './sequence.js';
import type { Verdict } from './timeline.js';

/** The report of one sequence. */
export interface Report {
  readonly name: string;
  readonly group: GroupName;
  /** `unproven`: the reference reader missed something because the machine is too busy, so nothing is known. */
  readonly verdict: Verdict | 'crashed' | 'skipped' | 'unproven';
  /** The reason, in a few words. */
  readonly says: string;
  /** The time from each update to the line of the program, ms. */
  readonly delays: readonly number[];
  /** The number of lines that repeated the previous one. */
  readonly repeats: number;
  /** What a right program does; for failures. */
  readonly advice?: string;
  /** What happened, in the order of time; for failures. */
  readonly timeline?: readonly string[];
}

export function isFailure(verdict: Report['verdict']): boolean {
  return verdict !== 'right' && verdict !== 'skipped';
}
