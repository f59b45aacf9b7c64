#!/usr/bin/env node
/** The program `resilient-watcher`. */
import { createRequire } from 'node:module';

import { Command, CommanderError, Option } from 'commander';

import { splitCommand } from './arguments.js';
import { endProcess } from './end-process.js';
import { EXIT, ExitError } from './exit-code.js';
import type { Invocation } from './invocation.js';
import { LOG_LEVELS, Output, type OutputOptions } from './output.js';
import { Session } from './session.js';

const { version } = createRequire(import.meta.url)('../../package.json') as { readonly version: string };

/** Flags that every command has. */
interface CommonFlags {
  readonly json?: true;
  readonly logLevel: OutputOptions['level'];
}

/** Adds a command with the common flags. */
type Add = <Flags>(
  name: string,
  describe: (command: Command) => void,
  run: (invocation: Invocation<Flags>) => Promise<void>,
) => void;

/** Each command imports its own modules, so that an init container does not wait for others to load. */
const COMMANDS: Readonly<Record<string, (add: Add) => Promise<void>>> = {
  async watch(add) {
    const { addWatchCommand, runWatch } = await import('./watch-command.js');
    add('watch', addWatchCommand, runWatch);
  },
  async run(add) {
    const { addRunCommand, runRun } = await import('./run-command.js');
    add('run', addRunCommand, runRun);
  },
  async wait(add) {
    const { addWaitCommand, runWait } = await import('./wait-command.js');
    add('wait', addWaitCommand, runWait);
  },
  async doctor(add) {
    const { addDoctorCommand, runDoctor } = await import('./doctor-command.js');
    add('doctor', addDoctorCommand, runDoctor);
  },
  async token(add) {
    const { addTokenCommand, runToken } = await import('./token-command.js');
    add('token', addTokenCommand, runToken);
  },
  async kubeconfig(add) {
    const { addKubeconfigCommand, runKubeconfig } = await import('./token-command.js');
    add('kubeconfig', addKubeconfigCommand, runKubeconfig);
  },
};

/** The commands that take another command after `--`. */
const WITH_COMMAND: readonly string[] = ['watch', 'run', 'wait'];

/** Parses the command line, runs the command, and resolves to the exit code. */
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

  const add: Add = <Flags>(
    name: string,
    describe: (command: Command) => void,
    run: (invocation: Invocation<Flags>) => Promise<void>,
  ) => {
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
        // What it waits for may never come, as a file system that does not answer.
        await Promise.race([
          run({ paths: command.args, flags, command: given ?? [], session }),
          session.ended,
        ]);
      });
  };
  // The help, and the error for an unknown name, list all commands.
  const [name = ''] = own;
  const named = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  for (const addTo of named ? [named] : Object.values(COMMANDS)) await addTo(add);

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
  // Commander has already printed it. Help and version are not failures.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  const message = error instanceof Error ? error.message : String(error);
  if (session) session.output.log('error', 'error', message);
  else process.stderr.write(`${message}\n`);
  if (error instanceof ExitError) return error.exitCode;
  // The library throws these for wrong arguments.
  return error instanceof TypeError || error instanceof RangeError ? EXIT.usage : EXIT.failed;
}

// The reader of the output is gone. Keep watching.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

await endProcess(await main(process.argv.slice(2)));
