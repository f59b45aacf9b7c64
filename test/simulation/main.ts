/**
 * Runs schedules: `node test/simulation/run.mjs [--seed N] [--kind K] [--runs N]`. The exit code is 1 if one of them violates an
 * invariant. If it was forked, it runs one command line after another.
 */
import './globals.js';
import { CommandLine } from './command-line.js';

async function answer(args: string[]): Promise<void> {
  const lines: string[] = [];
  await new CommandLine(args, (text) => lines.push(text)).run();
  process.send?.(lines.join('\n'));
}

if (process.send) process.on('message', (args: string[]) => void answer(args));
else if (!(await new CommandLine(process.argv.slice(2), console.log).run())) process.exitCode = 1;
