import type { Command } from 'commander';

import { updateOf } from '../action.js';
import { addRunFlags, reloadActionOf, type RunFlags } from './action-flags.js';
import { checkPaths, signalName } from './arguments.js';
import { Child, forwardSignals } from './child.js';
import { EXIT, ExitError } from './exit-code.js';
import { addListenFlag, listen, type ListenFlags } from './listen.js';
import type { Invocation, Subcommand } from './subcommand.js';
import {
  addWatchFlags,
  createWatchers,
  missingPaths,
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

function reaction(text: string): Reaction {
  return text === 'restart' ? text : signalName(text);
}

/** Runs `run` until the command has ended. */
async function runRun({ paths, flags, command, session }: Invocation<Flags>): Promise<void> {
  checkPaths(paths);
  if (command.length === 0) {
    throw new ExitError(EXIT.usage, 'no command is given; put it after --, as in -- /app/server');
  }
  session.becomeInit();
  const child = new Child(command, session, flags);
  forwardSignals(child, session);
  const { onChange = 'SIGHUP' } = flags;
  const react = async (): Promise<void> => {
    if (onChange === 'restart') await child.restart();
    else child.signal(onChange);
  };
  const kind = onChange === 'restart' ? onChange : 'signal';
  const reload = reloadActionOf([{ name: onChange, kind, run: react }], flags, session);
  const startWhenComplete = (): void => {
    const missing = missingPaths(watchers);
    if (missing.length === 0) child.start();
    else session.output.log('info', 'waiting', `waiting for ${missing.join(', ')}`, { missing });
  };
  let isReady = false;
  const watchers = createWatchers(paths, flags, session, (change, { path }) => {
    if (!isReady) return;
    if (child.isRunning) reload.trigger(updateOf(change, path));
    else startWhenComplete();
  });
  await listen(flags, session);
  await reload.start();
  await startWatchers(watchers, session);
  isReady = true;
  startWhenComplete();
}

/** `run`: starts the application, as PID 1 of its container. */
export const run: Subcommand<Flags> = { describe: addRunCommand, run: runRun };
