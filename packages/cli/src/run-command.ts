import type { Command } from 'commander';

import { isOnWindows } from 'resilient-watcher/internal';

import { updateOf, type Action } from './action.js';
import { addRunFlags, reloadActionOf, type RunFlags } from './action-flags.js';
import { checkPaths, signalName } from './arguments.js';
import { Child, forwardSignals } from './child.js';
import { UsageError } from './exit-code.js';
import { addListenFlag, listen, type ListenFlags } from './listen.js';
import type { Invocation, Subcommand } from './subcommand.js';
import {
  addWatchFlags,
  createWatchers,
  missingPaths,
  relevant,
  reportMissing,
  settled,
  startWatchers,
  type WatchFlags,
} from './watched-paths.js';

/** What a change does to the command. */
type Reaction = 'restart' | NodeJS.Signals;

interface Flags extends RunFlags, WatchFlags, ListenFlags {
  readonly onChange?: Reaction;
}

function addRunCommand(command: Command): void {
  addRunFlags(
    command
      .description('start a command when all paths exist, and signal or restart it on each change')
      .usage('[options] <path...> -- <command...>')
      .argument('[path...]', 'what to watch; the command follows after --')
      .optionsGroup('What to do on a change:')
      .option('--on-change <signal|restart>', 'send this signal, or restart (default: HUP)', reaction),
  );
  addListenFlag(addWatchFlags(command)).addHelpText(
    'after',
    `
The exit code is that of the command, or 128 + n if signal n killed it. INT, TERM, HUP, QUIT, USR1, USR2 and WINCH are
forwarded to the command. As PID 1, this program also reaps orphans.

Examples:
  resilient-watcher run /etc/app -- /app/server
  resilient-watcher run /etc/app /etc/tls --on-change restart -- /app/server`,
  );
}

function actionOf(name: string, kind: string, run: () => Promise<void> | void): Action {
  return { name, kind, run: async () => run() };
}

function reaction(text: string): Reaction {
  if (text === 'restart') return text;
  return signalName(text, 'It must be restart, or a signal such as HUP.');
}

/** Runs `run` until the command has ended. */
async function runRun({ paths, flags, command, execution }: Invocation<Flags>): Promise<void> {
  checkPaths(paths);
  if (command.length === 0) {
    throw new UsageError('no command is given; put it after --, as in -- /app/server');
  }
  const { onChange = 'SIGHUP' } = flags;
  if (isOnWindows() && onChange !== 'restart') {
    throw new UsageError(`on Windows, ${onChange} would end the command; use --on-change restart`);
  }
  await execution.becomeInit();
  const child = new Child(command, execution, flags);
  forwardSignals(child, execution);
  const missing = (): string[] => missingPaths(watchers);
  const startWhenComplete = (): void => {
    reportMissing(missing(), execution);
    if (missing().length > 0) return;
    hasStarted = true;
    child.start();
  };
  const reload = reloadActionOf(
    onChange === 'restart'
      ? [
          // What runs is not stopped for a path that is gone.
          actionOf('restart', 'stop', () => (missing().length > 0 ? undefined : child.stop())),
          actionOf('restart', 'start', startWhenComplete),
        ]
      : [actionOf(onChange, 'signal', () => child.reload(onChange))],
    flags,
    execution,
  );
  reload.on('rejected', () => {
    if (child.isRunning) return;
    const message = `${command[0]}: not running until a change passes the check`;
    execution.output.log('warn', 'stopped', message);
  });
  let isReady = false;
  let hasStarted = false;
  const trigger = settled({ paths, settle: flags.settle }, execution, (update) => reload.trigger(update));
  const watchers = createWatchers(paths, flags, execution, (given, { path }) => {
    const change = relevant(given, flags);
    if (!isReady) return;
    if (!hasStarted) startWhenComplete();
    else if (change) trigger(updateOf(change, path));
  });
  await listen(flags, execution);
  await reload.start();
  await startWatchers(watchers, execution);
  isReady = true;
  startWhenComplete();
}

/** `run`: starts the application, as PID 1 of its container. */
export const run: Subcommand<Flags> = { describe: addRunCommand, run: runRun };
