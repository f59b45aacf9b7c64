/** Plays sequences against a program, and reports each. */
import { setMaxListeners } from 'node:events';

import { isFailure, type Report } from './report.js';
import { DEADLINE_MS } from './sequence.js';
import type { GroupedSequence } from './sequences.js';
import { unmet } from './requirement.js';
import { adviceFor } from './advice.js';
import { Stage, StageOver } from './stage.js';
import type { LineFormat } from './tested-program.js';

/** What is tested, and how. */
export interface SuiteOptions {
  readonly command: readonly string[];
  readonly lines: LineFormat;
  /** How long a state may take to be seen, ms; undefined for the deadline of each sequence. */
  readonly timeoutMs: number | undefined;
  /** The number of sequences that are played at a time. */
  readonly jobs: number;
  /** Ends the suite, which leaves nothing behind. */
  readonly signal: AbortSignal;
  readonly onReport: (report: Report) => void;
}

/** How often a sequence is repeated that the reference reader did not see because the machine was too busy. */
const ATTEMPTS = 3;

/**
 * Plays the sequences, and resolves to their reports, in their order.
 * @throws the reason of the signal.
 */
export async function playAll(
  sequences: readonly GroupedSequence[],
  options: SuiteOptions,
): Promise<Report[]> {
  const reports: Report[] = [];
  // Each sequence listens while it waits.
  setMaxListeners(0, options.signal);
  const waiting = sequences.entries();
  const work = async (): Promise<void> => {
    for (const [index, sequence] of waiting) {
      const report = await play(sequence, options);
      reports[index] = report;
      options.onReport(report);
    }
  };
  // All sequences clean up before the first error is thrown.
  const results = await Promise.allSettled(Array.from({ length: options.jobs }, work));
  const failed = results.find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
  return reports;
}

async function play(sequence: GroupedSequence, options: SuiteOptions): Promise<Report> {
  const { name, group, needs = [] } = sequence;
  const reason = unmet(needs);
  if (reason !== undefined) return { name, group, verdict: 'skipped', says: reason, delays: [], repeats: 0 };
  for (let attempt = 1; ; attempt += 1) {
    const report = await playOnce(sequence, options);
    if (report.verdict !== 'unproven' || attempt === ATTEMPTS) return report;
  }
}

async function playOnce(sequence: GroupedSequence, options: SuiteOptions): Promise<Report> {
  const { name, group, needs = [], deadlineMs = DEADLINE_MS, parent, contentOf } = sequence;
  const { command, lines, timeoutMs = deadlineMs, signal } = options;
  signal.throwIfAborted();
  const stage = new Stage({ command, lines, deadlineMs: timeoutMs, signal, parent, contentOf });
  try {
    await sequence.run(stage);
    await stage.finish();
  } catch (error) {
    if (!(error instanceof StageOver)) throw error;
  } finally {
    await stage.close();
  }
  const { program, reference, crash } = stage;
  const report = (verdict: Report['verdict'], says: string): Report => ({
    ...{ name, group, verdict, says },
    ...{ delays: program.delays, repeats: program.repeats },
    ...(isFailure(verdict) && {
      advice: adviceFor(sequence, verdict, program.hasLine),
      timeline: stage.record.lines(),
    }),
  });
  if (crash !== undefined) {
    // The other user may not be allowed to enter the directory of the program.
    const isRefused = needs.includes('root') && !program.hasLine;
    return isRefused ? report('skipped', `not started as another user: ${crash}`) : report('crashed', crash);
  }
  const { verdict, says } = program.judge();
  const witnessed = reference.judge();
  if (verdict !== 'silent' && witnessed.verdict !== 'right') {
    return report('unproven', `the reference reader: ${witnessed.says}`);
  }
  return report(verdict, says);
}
