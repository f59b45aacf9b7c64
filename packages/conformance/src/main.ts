/** The program `watch-conformance`. */
import { accessSync, constants, statSync } from 'node:fs';
import { availableParallelism, constants as os } from 'node:os';
import { delimiter, join } from 'node:path';
import { parseArgs } from 'node:util';

import { MEASURES } from './measures.js';
import { FORMATS, listOf, measureLine, outputFor, type Format } from './output.js';
import { chosen } from './sequences.js';
import { isFailure } from './report.js';
import { playAll } from './suite.js';
import type { LineFormat } from './tested-program.js';

/** More sequences would slow each other down: a program may need more than one core to start in time. */
const MOST_JOBS = 4;

const WHERE_PROGRAM = 'the program follows after --, with {path} where the path belongs';

const HELP = `Usage: watch-conformance [options] -- <command with {path}>

Tests a file watcher, in any language, with the sequences of system calls that Kubernetes makes.

Options:
  --only <name>      run only this sequence or group (repeatable; default: all)
  --timeout <ms>     how long the program may take to see a state (default: 5000, or 15000 for some sequences)
  --lines <format>   what the program prints: digest, the SHA-256 of the contents (default), or content
  --format <format>  text (default), json (a document a line), tap or junit
  --jobs <n>         how many sequences to run at a time (default: twice the cores, at most ${MOST_JOBS})
  --measure          measure delay and cost instead of playing sequences; --only takes the name of a measure
  --list             describe the sequences and the measures, and exit
  --help             show this text and exit

The program follows -- and is started for each sequence, with the path to follow in place of {path}. It prints a line
for each state that it believes to be current, including the first: the SHA-256 of the contents in hexadecimal. Other
lines are ignored. It must flush its output, and is killed at the end of each sequence.

Exit codes: 0 if every sequence is right or skipped, or all was measured, 1 otherwise, 2 for a wrong command line.

Examples:
  watch-conformance -- python3 watch.py {path}
  watch-conformance --only swap --only file --format tap -- ./watch {path}`;

/** A wrong command line. */
class UsageError extends Error {}

interface Flags {
  readonly only: readonly string[];
  readonly timeoutMs: number | undefined;
  readonly lines: LineFormat;
  readonly format: Format;
  readonly jobs: number;
  readonly isMeasure: boolean;
  readonly isList: boolean;
  readonly isHelp: boolean;
}

/** Resolves to the exit code. */
async function main(args: readonly string[]): Promise<number> {
  const at = args.indexOf('--');
  const flags = flagsOf(at < 0 ? args : args.slice(0, at));
  if (flags.isHelp) return say(HELP);
  const { isMeasure } = flags;
  const sequences = chosen(flags.only);
  const measures = MEASURES.filter(({ name }) => flags.only.length === 0 || flags.only.includes(name));
  const isKnown = (name: string): boolean =>
    isMeasure ? measures.some((each) => each.name === name) : chosen([name]).length > 0;
  const unknown = flags.only.find((name) => !isKnown(name));
  if (unknown !== undefined) {
    throw new UsageError(`there is no ${isMeasure ? 'measure' : 'sequence'} ${unknown}; --list shows all`);
  }
  if (flags.isList) {
    const entries = sequences.map(({ name, group, says }) => ({ name, group, says }));
    return say(
      flags.format === 'json' ? JSON.stringify({ sequences: entries }) : listOf(sequences, MEASURES),
    );
  }
  const command = at < 0 ? [] : args.slice(at + 1);
  if (!command.some((part) => part.includes('{path}'))) {
    throw new UsageError(WHERE_PROGRAM);
  }
  checkExecutable(command[0] ?? '');
  if (isMeasure && flags.format !== 'text' && flags.format !== 'json') {
    throw new UsageError('--measure prints text or json');
  }
  const output = outputFor(flags.format, (name) => alone(name, flags, command), sequences.length);
  const end = new AbortController();
  let signalled: NodeJS.Signals | undefined;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      signalled = signal;
      end.abort();
    });
  }
  try {
    if (isMeasure) {
      for (const measure of measures) {
        const measured = await measure.run({ command, lines: flags.lines, signal: end.signal });
        say(measureLine(flags.format, measure.name, measured));
      }
      return 0;
    }
    const reports = await playAll(sequences, {
      ...{ command, lines: flags.lines, timeoutMs: flags.timeoutMs, jobs: flags.jobs },
      ...{ signal: end.signal, onReport: output.report },
    });
    output.end(reports);
    return reports.some(({ verdict }) => isFailure(verdict)) ? 1 : 0;
  } catch (error) {
    if (signalled === undefined) throw error;
    return 128 + os.signals[signalled];
  }
}

function say(text: string): number {
  process.stdout.write(`${text}\n`);
  return 0;
}

function flagsOf(args: readonly string[]): Flags {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        only: { type: 'string', multiple: true, default: [] },
        timeout: { type: 'string' },
        lines: { type: 'string', default: 'digest' },
        format: { type: 'string', default: 'text' },
        jobs: { type: 'string', default: String(Math.min(MOST_JOBS, availableParallelism() * 2)) },
        measure: { type: 'boolean', default: false },
        list: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
    // A program without the `--` before it.
    if (positionals.length > 0) throw new UsageError(WHERE_PROGRAM);
    return {
      only: values.only,
      timeoutMs: values.timeout === undefined ? undefined : count('timeout', values.timeout),
      lines: oneOf('lines', values.lines, ['digest', 'content']),
      format: oneOf('format', values.format, FORMATS),
      jobs: count('jobs', values.jobs),
      isMeasure: values.measure,
      isList: values.list,
      isHelp: values.help,
    };
  } catch (error) {
    throw error instanceof TypeError ? new UsageError(error.message) : error;
  }
}

function count(flag: string, text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text))
    throw new UsageError(`--${flag} must be a number from 1 to 999999, got ${text}`);
  return Number(text);
}

function oneOf<T extends string>(flag: string, text: string, wanted: readonly T[]): T {
  const found = wanted.find((each) => each === text);
  if (found === undefined) throw new UsageError(`--${flag} must be ${wanted.join(' or ')}, got ${text}`);
  return found;
}

/** Without it, each sequence would fail for the same reason. */
function checkExecutable(file: string): void {
  const folders = file.includes('/') ? [''] : (process.env['PATH'] ?? '').split(delimiter);
  if (folders.some((folder) => isExecutable(folder === '' ? file : join(folder, file)))) return;
  const where = file.includes('/') ? 'it is no executable file' : 'it is not in PATH';
  throw new UsageError(`cannot start ${file}: ${where}`);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return process.platform === 'win32'; // names without their extension
  }
}

/** The command line that runs a sequence alone. */
function alone(name: string, { lines, timeoutMs }: Flags, command: readonly string[]): string {
  const flags = [
    ...(lines === 'digest' ? [] : ['--lines', lines]),
    ...(timeoutMs === undefined ? [] : ['--timeout', String(timeoutMs)]),
  ];
  return ['npx watch-conformance --only', name, ...flags, '--', ...command.map(quoted)].join(' ');
}

const quoted = (text: string): string =>
  /^[\w@%+=:,./{}-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`watch-conformance: ${error.message}\n`);
  process.exitCode = 2;
}
