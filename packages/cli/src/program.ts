/** The program `resilient-watcher`, without its process. */
import { createRequire } from 'node:module';

import { Command, CommanderError, Option } from 'commander';

import { refuseRepeated, splitCommand } from './arguments.js';
import { EXIT, ExitError, UsageError } from './exit-code.js';
import type { Io } from './io.js';
import { LOG_LEVELS, Output, print, visible, type OutputOptions } from './output.js';
import { Execution } from './execution.js';
import type { Subcommand } from './subcommand.js';
import { printTelemetry } from './telemetry.js';

const { version } = createRequire(import.meta.url)('../package.json') as { readonly version: string };

/** Flags that every command has. */
interface CommonFlags {
  readonly json?: true;
  readonly logLevel: OutputOptions['level'];
}

/** After each error of a command line. */
const HINT = '(use --help for usage and examples)';

/** Each command imports its own modules, so that an init container does not wait for others to load. */
export const COMMANDS: Readonly<Record<string, () => Promise<Subcommand>>> = {
  watch: async () => (await import('./watch-command.js')).watch,
  run: async () => (await import('./run-command.js')).run,
  wait: async () => (await import('./wait-command.js')).wait,
  doctor: async () => (await import('./doctor-command.js')).doctor,
  token: async () => (await import('./token-command.js')).token,
  kubeconfig: async () => (await import('./token-command.js')).kubeconfig,
  'sync-pods': async () => (await import('./sync-pods-command.js')).syncPods,
};

/** The commands that take another command after `--`. */
const WITH_COMMAND: readonly string[] = ['watch', 'run', 'wait'];

/**
 * Parses the command line, runs the command, and resolves to the exit code. Nothing of it runs any longer then; its
 * listeners for signals stay, so that no signal interrupts the end of the process.
 */
export async function main(args: readonly string[], io: Io): Promise<number> {
  const { own, command: given } = splitCommand(args);
  const [name = ''] = own;
  let execution: Execution | undefined;
  const shown: string[] = [];
  const program = programFor(!given && WITH_COMMAND.includes(name)).configureOutput({
    writeOut: (text) => shown.push(text),
    writeErr: (text) => io.stderr.write(text),
  });
  // The help and the error for an unknown name list all commands.
  for (const each of Object.hasOwn(COMMANDS, name) ? [name] : Object.keys(COMMANDS)) {
    const subcommand = await COMMANDS[each]?.();
    const command = program.command(each);
    subcommand?.describe(command);
    refuseRepeated(addCommonFlags(command)).action(async () => {
      const flags = command.opts<CommonFlags>();
      const output = new Output({ json: flags.json ?? false, level: flags.logLevel }, io);
      execution = new Execution(output, io);
      execution.closeAtEnd(printTelemetry(output));
      if (given && !WITH_COMMAND.includes(each)) {
        throw new UsageError(`${each} does not take a command after --`);
      }
      if (given && !given[0]) throw new UsageError('no command is given after --');
      const invocation = { paths: command.args, flags, command: given ?? [], execution };
      // The command may wait for something that never comes, such as an answer from a dead file server.
      await Promise.race([subcommand?.run(invocation), execution.ended]);
    });
  }
  let exitCode: number | undefined;
  try {
    await program.parseAsync(own, { from: 'user' }).finally(async () => {
      if (shown.length > 0) await print(io.stdout, shown.join(''));
    });
  } catch (error) {
    exitCode = exitCodeFor(error, io, execution);
    execution?.end(exitCode);
  }
  return (await execution?.finished()) ?? exitCode ?? EXIT.ok;
}

/** @param mayLackDashes whether an unknown option may belong to a command that has no `--` before it. */
function programFor(mayLackDashes: boolean): Command {
  return new Command('resilient-watcher')
    .description('Acts on changes to the ConfigMaps, Secrets, certificates and tokens that a process uses.')
    .version(version)
    .exitOverride()
    .showHelpAfterError(HINT)
    .configureOutput({
      outputError(message, write) {
        const isLikely = mayLackDashes && message.includes('unknown option');
        write(isLikely ? `${message}(a command to run, with its options, follows after --)\n` : message);
      },
    })
    .addHelpText(
      'after',
      `
For the options of a command, and examples, use <command> --help.

Exit codes:
  0    done, or stopped by a signal          3    doctor: updates never arrive
  1    an action or a request failed         4    doctor: updates arrive late, or only by polling
  2    the command line is wrong             124  timed out
  run and wait exit with the code of the command, 126 or 127 if it cannot be started, or 128 + n if
  signal n ended it, or them`,
    );
}

function addCommonFlags(command: Command): Command {
  return command
    .optionsGroup('Options:')
    .option('--json', 'print events on stdout, one JSON document per line, instead of text on stderr')
    .addOption(
      new Option('--log-level <level>', 'print events of this level and above')
        .choices(LOG_LEVELS)
        .default('info'),
    );
}

function exitCodeFor(error: unknown, io: Io, execution: Execution | undefined): number {
  // Commander has already printed it. Help and version are not failures.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  const message = error instanceof Error ? error.message : String(error);
  const exitCode = codeOf(error);
  // As Commander prints what it finds itself.
  if (exitCode === EXIT.usage) io.stderr.write(`error: ${visible(message)}\n${HINT}\n`);
  else if (execution) execution.output.log('error', 'error', message);
  else io.stderr.write(`${message}\n`);
  return exitCode;
}

function codeOf(error: unknown): number {
  if (error instanceof ExitError) return error.exitCode;
  // The library throws these for wrong arguments.
  return error instanceof TypeError || error instanceof RangeError ? EXIT.usage : EXIT.failed;
}
