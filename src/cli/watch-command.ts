import type { Command } from 'commander';

import { ReloadAction, updateOf } from '../action.js';
import { actionsOf, addActionFlags, reloadOptions, type ActionFlags } from './action-flags.js';
import { EXIT } from './exit-code.js';
import type { Session } from './session.js';
import { addWatchFlags, watchPaths, type WatchFlags } from './watched-paths.js';

interface Flags extends ActionFlags, WatchFlags {
  readonly initial?: true;
  readonly once?: true;
}

/** `watch`: acts on changes as a sidecar does. */
export function addWatchCommand(command: Command): Command {
  addActionFlags(
    command
      .description('act on each change of files, volumes or directories')
      .argument('<path...>', 'what to watch; a command may follow after --'),
  );
  addWatchFlags(command)
    .option('--initial', 'act on what is there at the start, too')
    .option('--once', 'exit when the first change has been acted on')
    .addHelpText(
      'after',
      `
The command gets the change in RW_PATH, RW_KEYS, RW_REVISION and RW_CAUSE, and as JSON on stdin; never contents.

Examples:
  resilient-watcher watch /etc/nginx/conf.d --check 'nginx -t' -- nginx -s reload
  resilient-watcher watch /etc/tls --signal HUP --process haproxy
  resilient-watcher watch /etc/prometheus --webhook http://localhost:9090/-/reload`,
    );
  return command;
}

/** Runs `watch` until the session ends. */
export async function runWatch(
  paths: readonly string[],
  flags: Flags,
  command: readonly string[],
  session: Session,
): Promise<void> {
  const actions = actionsOf(flags, command, session);
  const reload =
    actions.length > 0 ? new ReloadAction({ ...reloadOptions(flags, session), action: actions }) : undefined;
  if (reload) {
    session.closeAtEnd(reload);
    report(reload, session);
    if (flags.once) reload.on('succeeded', () => session.end(EXIT.ok));
    if (flags.exitOnError)
      for (const event of ['failed', 'rejected'] as const) reload.on(event, () => session.end(EXIT.failed));
  }
  session.endOnSignals(['SIGTERM', 'SIGINT']);
  await watchPaths(paths, flags, session, (change, path) => {
    if (change.cause === 'start' && !flags.initial) return;
    if (reload) reload.trigger(updateOf(change, path));
    else if (flags.once) session.end(EXIT.ok);
  });
  session.output.log('info', 'ready', `watching ${paths.join(', ')}`, { paths });
}

/** Prints the results of an action. */
export function report(reload: ReloadAction, { output }: Session): void {
  const { name } = reload;
  reload.on('started', ({ attempt }) =>
    output.log('debug', 'started', `${name}: attempt ${attempt}`, { action: name, attempt }),
  );
  reload.on('succeeded', ({ attempt, durationMs }) => {
    output.log('info', 'succeeded', `${name}: done in ${Math.round(durationMs)} ms`, {
      action: name,
      attempt,
      durationMs,
    });
  });
  reload.on('failed', ({ error, attempt, retryDelayMs }) => {
    const next = retryDelayMs === null ? 'not tried again' : `next attempt in ${Math.round(retryDelayMs)} ms`;
    output.log('warn', 'failed', `${error.message}; ${next}`, {
      action: name,
      attempt,
      code: error.code,
      retryDelayMs,
    });
  });
  reload.on('rejected', ({ error }) => {
    output.log('warn', 'rejected', `check failed, nothing is done: ${error.message}`, {
      action: name,
      code: error.code,
    });
  });
  reload.on('error', (error) => output.log('error', 'error', error.message));
}
