/** The formats of the results, all of them on standard output. */
import type { Measure, Measured } from './measures.js';
import { GROUPS } from './sequence.js';
import type { GroupedSequence } from './sequences.js';
import { isFailure, type Report } from './report.js';

export const FORMATS = ['text', 'json', 'tap', 'junit'] as const;
export type Format = (typeof FORMATS)[number];

/** Writes results as they come, and what belongs at the end. */
export interface Output {
  readonly report: (report: Report) => void;
  readonly end: (reports: readonly Report[]) => void;
}

/**
 * @param command the command line that runs a sequence alone.
 * @param count the number of sequences.
 */
export function outputFor(format: Format, command: (name: string) => string, count: number): Output {
  const print = (...lines: readonly string[]): void => void process.stdout.write(`${lines.join('\n')}\n`);
  switch (format) {
    case 'text':
      return {
        report: (report) =>
          print(lineOf(report), ...explanation(report, command).map((line) => `    ${line}`)),
        end: (reports) => print(...advised(reports), totalOf(summaryOf(reports))),
      };
    case 'json':
      return {
        report: (report) => print(JSON.stringify({ event: 'sequence', ...report, ...runs(report, command) })),
        end: (reports) => print(JSON.stringify({ event: 'total', ...summaryOf(reports) })),
      };
    case 'tap':
      return tap(print, command, count);
    case 'junit':
      return { report: () => {}, end: (reports) => print(junit(reports, command)) };
  }
}

const idOf = ({ group, name }: Report): string => `${group}/${name}`;

const runs = (report: Report, command: (name: string) => string): object =>
  isFailure(report.verdict) ? { command: command(report.name) } : {};

const lineOf = (report: Report): string => `${report.verdict.padEnd(8)} ${idOf(report)}: ${report.says}`;

function explanation(report: Report, command: (name: string) => string): string[] {
  const { verdict, name, advice = '', timeline = [] } = report;
  if (!isFailure(verdict)) return [];
  return [`A right program: ${advice}`, 'What happened:', ...timeline, `Run it alone: ${command(name)}`];
}

/** At most this many names of sequences are shown beside an advice. */
const SHOWN_NAMES = 4;

/** What to do first: the advice that most failures have in common. */
function advised(reports: readonly Report[]): string[] {
  const byAdvice = new Map<string, string[]>();
  for (const { verdict, advice = '', name } of reports) {
    if (isFailure(verdict)) byAdvice.set(advice, [...(byAdvice.get(advice) ?? []), name]);
  }
  const lines = [...byAdvice]
    .sort(([, one], [, other]) => other.length - one.length)
    .map(([advice, names]) => {
      const others = names.length > SHOWN_NAMES ? ` and ${names.length - SHOWN_NAMES} more` : '';
      return `${String(names.length).padStart(4)} × ${advice} (${names.slice(0, SHOWN_NAMES).join(', ')}${others})`;
    });
  return lines.length < 2 ? [] : ['What a right program does, by the number of failures:', ...lines];
}

function tap(print: (...lines: string[]) => void, command: (name: string) => string, count: number): Output {
  let number = 0;
  print('TAP version 14', `1..${count}`);
  return {
    report: (report) => {
      number += 1;
      const { verdict, says } = report;
      const directive = verdict === 'skipped' ? ` # SKIP ${says.replaceAll('#', '\\#')}` : '';
      const status = isFailure(verdict) ? 'not ok' : 'ok';
      print(`${status} ${number} - ${idOf(report)}${directive}`);
      if (!isFailure(verdict)) return;
      const lines = explanation(report, command).map((line) => `    ${printable(line)}`);
      print(
        '  ---',
        `  message: ${JSON.stringify(`${verdict}: ${says}`)}`,
        '  explanation: |',
        ...lines,
        '  ...',
      );
    },
    end: () => {},
  };
}

function junit(reports: readonly Report[], command: (name: string) => string): string {
  const cases = reports.map((report) => {
    const { name, group, verdict, says } = report;
    const head = `  <testcase classname="${group}" name="${name}"`;
    if (verdict === 'right') return `${head}/>`;
    if (verdict === 'skipped') return `${head}><skipped message="${escaped(says)}"/></testcase>`;
    const text = explanation(report, command).join('\n');
    return `${head}><failure type="${verdict}" message="${escaped(says)}">${escaped(text)}</failure></testcase>`;
  });
  const failures = reports.filter(({ verdict }) => isFailure(verdict)).length;
  const skipped = reports.filter(({ verdict }) => verdict === 'skipped').length;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuite name="watch-conformance" tests="${reports.length}" failures="${failures}" skipped="${skipped}">`,
    ...cases,
    '</testsuite>',
  ].join('\n');
}

/** Without control characters, which neither YAML nor XML can hold. */
function printable(text: string): string {
  return text.replace(/[\0-\x08\x0b-\x1f\x7f\ufffe\uffff]/g, '\ufffd');
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escaped(text: string): string {
  return printable(text)
    .toWellFormed()
    .replace(/[&<>"]/g, (character) => ENTITIES[character] ?? '');
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
    repeats: reports.reduce((sum, { repeats }) => sum + repeats, 0),
    medianMs: quantile(delays, 0.5),
    p99Ms: quantile(delays, 0.99),
  };
}

function quantile(sorted: readonly number[], q: number): number | null {
  const value = sorted[Math.max(0, Math.ceil(sorted.length * q) - 1)];
  return value === undefined ? null : Math.round(value * 10) / 10;
}

function totalOf({
  sequences,
  right,
  skipped,
  repeats,
  medianMs,
  p99Ms,
}: ReturnType<typeof summaryOf>): string {
  const total = `${right} of ${sequences - skipped} right${skipped === 0 ? '' : `, ${skipped} skipped`}`;
  const delay = medianMs === null ? '' : `; delay: median ${medianMs} ms, p99 ${p99Ms} ms`;
  return `${total}; ${repeats} needless lines${delay}`;
}

/** A line for a measure. */
export function measureLine(format: Format, name: string, measured: Measured): string {
  return format === 'json'
    ? JSON.stringify({ event: 'measure', name, ...measured })
    : `${name.padEnd(8)} ${measured.says}`;
}

/** The sequences with their groups, and the measures. */
export function listOf(sequences: readonly GroupedSequence[], measures: readonly Measure[]): string {
  const width = Math.max(...sequences.map(({ name }) => name.length));
  const groups = [...new Set(sequences.map(({ group }) => group))];
  const lines = groups.flatMap((group) => [
    `${GROUPS[group]} (${group}):`,
    ...sequences
      .filter((sequence) => sequence.group === group)
      .map(({ name, says }) => `  ${name.padEnd(width)}  ${says}`),
  ]);
  const entries = measures.map(({ name, says }) => `  ${name.padEnd(width)}  ${says}`);
  return [...lines, 'Measures (--measure):', ...entries].join('\n');
}
