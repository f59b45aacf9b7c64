import { resolve } from 'node:path';

import { InvalidArgumentError, type Command } from 'commander';

import { ActionError, ReloadAction } from '../action.js';
import { addRunFlags, reloadOptions, type RunFlags } from './action-flags.js';
import { each, signalOr } from './arguments.js';
import { forwardSignals, superviseCommand, type Child } from './child.js';
import { EXIT, ExitError } from './exit-code.js';
import { becomeInit } from './init.js';
import { addListenFlag, listen, type ListenFlags } from './listen.js';
import { report } from './report.js';
import type { Invocation } from './invocation.js';
import { checkPaths } from './watch-rule.js';
import { addWatchFlags, createWatchers, startWatchers, type WatchFlags } from './watched-paths.js';

/** The effect of a change on the command: `none`, `restart`, or a signal. */
type Reaction = 'none' | 'restart' | NodeJS.Signals;

interface Flags extends RunFlags, WatchFlags, ListenFlags {
  readonly onChange?: Reaction;
  readonly for?: readonly (readonly [path: string, reaction: Reaction])[];
}

/** `run`: starts the application, as PID 1 of its container. */
export function addRunCommand(command: Command): void {
  addRunFlags(
    command
      .description('start a command when all paths exist, and signal or restart it on each change')
      .argument('[path...]', 'what to watch; the command follows after --')
      .optionsGroup('What to do on a change:')
      .option('--on-change <what>', 'a signal, restart, or none (default: HUP)', reaction)
      .option('--for <path=what>', 'the same for one of the paths (repeatable)', each(reactionFor)),
  );
  addListenFlag(addWatchFlags(command)).addHelpText(
    'after',
    `
The exit code is that of the command, or 128 + n if signal n killed it. INT, TERM, HUP, QUIT, USR1, USR2 and WINCH are
forwarded to the command. As PID 1, this program also reaps orphans.

Examples:
  resilient-watcher run /etc/app --on-change HUP -- /app/server
  resilient-watcher run /etc/app /etc/tls --on-change restart --for /etc/tls=HUP -- /app/server`,
  );
}

function reaction(text: string): Reaction {
  return text === 'none' || text === 'restart' ? text : signalOr(', or restart, or none', text);
}

function reactionFor(text: string): [string, Reaction] {
  const equals = text.lastIndexOf('=');
  if (equals < 1) throw new InvalidArgumentError('It must be a path and what to do, as in /etc/tls=restart.');
  return [resolve(text.slice(0, equals)), reaction(text.slice(equals + 1))];
}

/** Runs `run` until the command has ended. */
export async function runRun({ paths, flags, command, session }: Invocation<Flags>): Promise<void> {
  checkPaths(paths);
  if (command.length === 0) {
    throw new ExitError(EXIT.usage, 'there is no command; it follows after --, as in -- /app/server');
  }
  const reactions = new Map(flags.for ?? []);
  if (flags.group && reactions.size > 0) {
    throw new ExitError(EXIT.usage, '--for cannot be used with --group: the paths change as one');
  }
  const known = paths.map((path) => resolve(path));
  for (const path of reactions.keys()) {
    if (!known.includes(path))
      throw new ExitError(EXIT.usage, `--for ${path}=… is for a path that is not watched`);
  }
  becomeInit(session.output);
  const child = superviseCommand(command, session, flags);
  forwardSignals(child, session);
  const reactionTo = (path: string): Reaction => reactions.get(resolve(path)) ?? flags.onChange ?? 'SIGHUP';
  const reload = session.closeAtEnd(
    new ReloadAction({
      ...reloadOptions(flags, session),
      action: {
        name: 'reload',
        run: (update) => react(child, new Set(update.paths.map(({ path }) => reactionTo(path)))),
      },
    }),
  );
  report(reload, session);
  if (flags.exitOnError) reload.on('failed', () => session.end(EXIT.failed));
  const startWhenComplete = (): void => {
    const missing = watched.flatMap((one) => one.missing);
    if (missing.length === 0) child.start();
    else session.output.log('info', 'waiting', `waiting for ${missing.join(', ')}`, { missing });
  };
  let isReady = false;
  const watched = createWatchers(paths, flags, session, (change, one) => {
    if (!isReady) return;
    if (!child.isRunning) startWhenComplete();
    else if (reactionTo(one.watcher.path) !== 'none') reload.trigger(one.updateOf(change));
  });
  await listen(flags, session);
  await reload.start();
  await startWatchers(watched, session);
  isReady = true;
  startWhenComplete();
}

/** Only the strongest of several reactions is needed: a command that is restarted needs no signal. */
async function react(child: Child, reactions: ReadonlySet<Reaction>): Promise<void> {
  if (reactions.has('restart')) {
    await child.restart();
    return;
  }
  for (const signal of reactions) {
    if (signal === 'none' || signal === 'restart') continue;
    if (!child.isRunning) throw new ActionError('ERR_ACTION_PROCESS', 'the command is not running');
    child.signal(signal);
  }
}
