import type { Command } from 'commander';
import { Outcome } from 'resilient-watcher/internal';

import { checkPaths, duration, each, text } from './arguments.js';
import { Child, forwardSignals } from './child.js';
import { EXIT } from './exit-code.js';
import type { Invocation, Subcommand } from './subcommand.js';
import {
  addPollFlag,
  createWatchers,
  missingPaths,
  reportMissing,
  startWatchers,
  type WatchFlags,
} from './watched-paths.js';

interface Flags extends WatchFlags {
  readonly key?: readonly string[];
  readonly timeout?: number;
}

function addWaitCommand(command: Command): void {
  command
    .description('wait until all paths exist')
    .usage('[options] <path...> [-- <command...>]')
    .argument('[path...]', 'what to wait for; a command to run afterwards may follow after --')
    .optionsGroup('What to wait for:')
    .option('--key <name>', 'wait for this key in each path, with contents (repeatable)', each(text))
    .option(
      '--timeout <duration>',
      'exit with 124 after waiting this long (default: wait forever)',
      duration,
    );
  addPollFlag(command).addHelpText(
    'after',
    `
Examples:
  resilient-watcher wait /etc/tls --key tls.crt --key tls.key --timeout 60s
  resilient-watcher wait /etc/app/config.yaml -- ./migrate`,
  );
}

/** Runs `wait` until everything is there, and then the command, if there is one. */
async function runWait({ paths, flags, command, execution }: Invocation<Flags>): Promise<void> {
  checkPaths(paths, 'wait for', '--key');
  const { key: keys, timeout } = flags;
  if (command.length > 0) await execution.becomeInit();
  const child = command.length === 0 ? undefined : new Child(command, execution);
  forwardSignals(child, execution);
  const complete = new Outcome<void>();
  const missing = (): string[] => missingPaths(watchers, keys);
  const watchers = createWatchers(paths, flags, execution, () => {
    if (missing().length === 0) complete.resolve();
  });
  const giveUp = (): void => {
    const absent = missing();
    execution.output.log('error', 'timeout', `gave up waiting for ${absent.join(', ')}`, { missing: absent });
    execution.end(EXIT.timeout);
  };
  const timer = timeout === undefined ? undefined : execution.io.clock.schedule(giveUp, timeout);
  await startWatchers(watchers, execution);
  reportMissing(missing(), execution);
  await complete.promise;
  timer?.cancel();
  for (const watcher of watchers) void watcher.close();
  if (child) child.start();
  else execution.end(EXIT.ok);
}

/** `wait`: for init containers and scripts. */
export const wait: Subcommand<Flags> = { describe: addWaitCommand, run: runWait };
