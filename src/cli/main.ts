#!/usr/bin/env node
/** The program `resilient-watcher`. */
import { createRequire } from 'node:module';

import { Command, CommanderError, Option } from 'commander';

import { splitCommand } from './arguments.js';
import { addDoctorCommand, runDoctor } from './doctor-command.js';
import { EXIT, ExitError } from './exit-code.js';
import type { Invocation } from './invocation.js';
import { LOG_LEVELS, Output, type OutputOptions } from './output.js';
import { addRunCommand, runRun } from './run-command.js';
import { Session } from './session.js';
import { addKubeconfigCommand, addTokenCommand, runKubeconfig, runToken } from './token-command.js';
import { addWaitCommand, runWait } from './wait-command.js';
import { addWatchCommand, runWatch } from './watch-command.js';

const { version } = createRequire(import.meta.url)('../../package.json') as { readonly version: string };

/** Flags that every command has. */
interface CommonFlags {
  readonly json?: true;
  readonly logLevel: OutputOptions['level'];
}

/** Those that take a command after `--`. */
const WITH_COMMAND: readonly string[] = ['watch', 'run', 'wait'];

/** Parses the command line, does what it says, and resolves with the exit code. */
async function main(args: readonly string[]): Promise<number> {
  const { own, command: given } = splitCommand(args);
  let session: Session | undefined;
  const program = new Command('resilient-watcher')
    .description('Acts when a ConfigMap, Secret, certificate or token changes under a process.')
    .version(version)
    .exitOverride()
    .showHelpAfterError('(add --help for the possibilities)')
    .addHelpText(
      'after',
      `
Every command has a --help with examples.

Exit codes:
  0    done, or stopped by a signal          3, 4  doctor: updates never arrive; are late or polled
  1    an action or a request failed         124   timed out
  2    the command line is wrong             run, wait: that of the command, 126, 127, or 128 + n for signal n`,
    );

  /** Adds a command with the common flags. */
  const add = <Flags>(
    name: string,
    describe: (command: Command) => void,
    run: (invocation: Invocation<Flags>) => Promise<void>,
  ): void => {
    const command = program.command(name);
    describe(command);
    command
      .optionsGroup('Options:')
      .option('--json', 'print events on stdout, one JSON document a line, instead of lines on stderr')
      .addOption(
        new Option('--log-level <level>', 'the least important events to print')
          .choices(LOG_LEVELS)
          .default('info'),
      )
      .action(async () => {
        const flags = command.opts<Flags & CommonFlags>();
        session = new Session(new Output({ json: flags.json ?? false, level: flags.logLevel }));
        if (given && !WITH_COMMAND.includes(name)) {
          throw new ExitError(EXIT.usage, `${name} does not take a command after --`);
        }
        if (given?.length === 0) throw new ExitError(EXIT.usage, 'there is no command after --');
        await run({ paths: command.args, flags, command: given ?? [], session });
      });
  };
  add('watch', addWatchCommand, runWatch);
  add('run', addRunCommand, runRun);
  add('wait', addWaitCommand, runWait);
  add('doctor', addDoctorCommand, runDoctor);
  add('token', addTokenCommand, runToken);
  add('kubeconfig', addKubeconfigCommand, runKubeconfig);

  let exitCode: number | undefined;
  try {
    await program.parseAsync(own, { from: 'user' });
  } catch (error) {
    exitCode = exitCodeFor(error, session);
    session?.end(exitCode);
  }
  return (await session?.finished()) ?? exitCode ?? EXIT.ok;
}

function exitCodeFor(error: unknown, session: Session | undefined): number {
  // Commander has printed it; help and version are no failure.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  const message = error instanceof Error ? error.message : String(error);
  if (session) session.output.log('error', 'error', message);
  else process.stderr.write(`${message}\n`);
  if (error instanceof ExitError) return error.exitCode;
  // The library refuses wrong arguments with these.
  return error instanceof TypeError || error instanceof RangeError ? EXIT.usage : EXIT.failed;
}

// Whoever read the output is gone; what is watched still matters.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

// Nothing is left to do: what still hangs, such as a read of a dead network file system, must not keep the process alive.
process.exit(await main(process.argv.slice(2)));
