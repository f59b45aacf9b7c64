#!/usr/bin/env node
/** The program `resilient-watcher`. */
import { createRequire } from 'node:module';

import { Command, CommanderError, Option } from 'commander';

import { splitCommand } from './arguments.js';
import { addDoctorCommand, runDoctor } from './doctor-command.js';
import { EXIT, ExitError } from './exit-code.js';
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

/** Parses the command line, does what it says, and resolves with the exit code. */
async function main(args: readonly string[]): Promise<number> {
  const { own, command: given } = splitCommand(args);
  let session: Session | undefined;
  const program = new Command('resilient-watcher')
    .description('Acts when a ConfigMap, Secret, certificate or token changes under a process.')
    .version(version)
    .exitOverride()
    .showHelpAfterError('(--help shows what is possible)');

  /** Adds a command with the common flags. */
  // The flags are what `describe` declares.
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters
  const add = <Flags extends object>(
    name: string,
    describe: (command: Command) => Command,
    run: (paths: readonly string[], flags: Flags, session: Session) => Promise<void>,
  ): void => {
    const command = program.command(name);
    describe(command)
      .option('--json', 'print NDJSON on stdout instead of lines on stderr')
      .addOption(
        new Option('--log-level <level>', 'print no less than this').choices(LOG_LEVELS).default('info'),
      )
      .action(async () => {
        const flags = command.opts<Flags & CommonFlags>();
        const paths = command.args;
        session = new Session(new Output({ json: flags.json ?? false, level: flags.logLevel }));
        await run(paths, flags, session);
      });
  };
  add<Parameters<typeof runWatch>[1]>('watch', addWatchCommand, (paths, flags, to) =>
    runWatch(paths, flags, given, to),
  );
  add<Parameters<typeof runRun>[1]>('run', addRunCommand, (paths, flags, to) =>
    runRun(paths, flags, given ?? [], to),
  );
  add<Parameters<typeof runWait>[1]>('wait', addWaitCommand, (paths, flags, to) =>
    runWait(paths, flags, given ?? [], to),
  );
  add<Parameters<typeof runDoctor>[1]>('doctor', addDoctorCommand, runDoctor);
  add<Parameters<typeof runToken>[0]>('token', addTokenCommand, (_, flags, to) => runToken(flags, to));
  add<Parameters<typeof runKubeconfig>[0]>('kubeconfig', addKubeconfigCommand, (_, flags, to) =>
    runKubeconfig(flags, to),
  );

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
