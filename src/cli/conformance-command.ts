import { availableParallelism } from 'node:os';

import { InvalidArgumentError, Option, type Command } from 'commander';

import { GROUPS } from '../conformance/sequence.js';
import { chosen, type GroupedSequence } from '../conformance/sequences.js';
import { playAll, type Report } from '../conformance/suite.js';
import type { LineFormat } from '../conformance/tested-program.js';
import { duration, each, text } from './arguments.js';
import { EXIT, ExitError } from './exit-code.js';
import { exitCodeOf, type Session } from './session.js';
import type { Invocation, Subcommand } from './subcommand.js';

interface Flags {
  readonly only?: readonly string[];
  readonly timeout?: number;
  readonly lines: LineFormat;
  readonly jobs: number;
  readonly list?: true;
}

/** More sequences would slow each other down: a program may need more than one core to start in time. */
const MOST_JOBS = 4;

function addConformanceCommand(command: Command): void {
  command
    .description('test a watcher, in any language, with the sequences of system calls that Kubernetes makes')
    .usage('[options] -- <command with {path}>')
    .option('--only <name>', 'run only this sequence or group (repeatable; default: all)', each(text))
    .option(
      '--timeout <duration>',
      'how long the program may take to see a state (default: 5s, or 15s for some sequences)',
      duration,
    )
    .addOption(
      new Option('--lines <format>', 'what the program prints: the SHA-256 of the contents, or the contents')
        .choices(['digest', 'content'])
        .default('digest'),
    )
    .option(
      '--jobs <n>',
      'how many sequences to run at a time',
      count,
      Math.min(MOST_JOBS, availableParallelism() * 2),
    )
    .option('--list', 'describe the sequences and exit')
    .addHelpText(
      'after',
      `
The program follows -- and is started for each sequence, with the path to follow in place of {path}. It prints a line
for each state that it believes to be current, including the first: the SHA-256 of the contents in hexadecimal. Other
lines are ignored. It must flush its output, and is killed at the end of each sequence.

Exit codes: 0 if every sequence is right, 1 otherwise.

Examples:
  resilient-watcher conformance -- python3 watch.py {path}
  resilient-watcher conformance --only swap --only file --json -- ./watch {path}`,
    );
}

/** Runs `conformance`. */
async function runConformance({ flags, command, session }: Invocation<Flags>): Promise<void> {
  const names = flags.only ?? [];
  const unknown = names.find((name) => chosen([name]).length === 0);
  if (unknown !== undefined) {
    throw new ExitError(EXIT.usage, `there is no sequence ${unknown}; --list shows all`);
  }
  const sequences = chosen(names);
  if (flags.list) {
    await session.output.result(listOf(sequences), {
      sequences: sequences.map(({ name, group, says }) => ({ name, group, says })),
    });
    session.end(EXIT.ok);
    return;
  }
  if (!command.some((part) => part.includes('{path}'))) {
    throw new ExitError(EXIT.usage, 'the program follows after --, with {path} where the path belongs');
  }
  session.endOnSignals((signal) => exitCodeOf(null, signal));
  const playing = playAll(sequences, {
    command,
    lines: flags.lines,
    timeoutMs: flags.timeout,
    jobs: flags.jobs,
    signal: session.signal,
    onReport: (report) => log(report, session),
  });
  // The sequences that are running end first, and leave nothing behind.
  session.closeAtEnd({ close: () => playing.catch(() => undefined) });
  const reports = await playing;
  const summary = summaryOf(reports);
  await session.output.result(totalOf(summary), { event: 'total', ...summary });
  session.end(summary.right + summary.skipped === reports.length ? EXIT.ok : EXIT.failed);
}

function count(given: string): number {
  if (!/^[1-9]\d{0,2}$/.test(given)) throw new InvalidArgumentError('It must be a number from 1 to 999.');
  return Number(given);
}

function log(report: Report, { output }: Session): void {
  const { name, verdict, says } = report;
  const level = verdict === 'right' ? 'info' : verdict === 'skipped' ? 'warn' : 'error';
  output.log(level, 'sequence', `${verdict.padEnd(8)} ${name}: ${says}`, { ...report });
}

/** The totals of a run. Delays are those of all updates that were made in one step, ms; null if there are none. */
function summaryOf(reports: readonly Report[]) {
  const delays = reports.flatMap((report) => report.delays).sort((a, b) => a - b);
  const of = (verdict: Report['verdict']): number =>
    reports.filter((report) => report.verdict === verdict).length;
  return {
    sequences: reports.length,
    right: of('right'),
    skipped: of('skipped'),
    medianMs: quantile(delays, 0.5),
    p99Ms: quantile(delays, 0.99),
  };
}

function quantile(sorted: readonly number[], q: number): number | null {
  const value = sorted[Math.max(0, Math.ceil(sorted.length * q) - 1)];
  return value === undefined ? null : Math.round(value * 10) / 10;
}

function totalOf({ sequences, right, skipped, medianMs, p99Ms }: ReturnType<typeof summaryOf>): string {
  const total = `${right} of ${sequences - skipped} right${skipped === 0 ? '' : `, ${skipped} skipped`}`;
  return medianMs === null ? total : `${total}; delay: median ${medianMs} ms, p99 ${p99Ms} ms`;
}

function listOf(sequences: readonly GroupedSequence[]): string {
  const width = Math.max(...sequences.map(({ name }) => name.length));
  const groups = [...new Set(sequences.map(({ group }) => group))];
  const lines = groups.flatMap((group) => [
    `${GROUPS[group]} (${group}):`,
    ...sequences
      .filter((sequence) => sequence.group === group)
      .map(({ name, says }) => `  ${name.padEnd(width)}  ${says}`),
  ]);
  return lines.join('\n');
}

/** `conformance`: tests how a watcher handles the updates that Kubernetes makes. */
export const conformance: Subcommand<Flags> = { describe: addConformanceCommand, run: runConformance };
