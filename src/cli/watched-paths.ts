/** The watchers of `watch`, `run` and `wait`, and the output about them. */
import type { Command } from 'commander';

import { ResilientWatcher, type Change } from '../index.js';
import { duration } from './arguments.js';
import type { Session } from './session.js';

/** How paths are watched. */
export interface WatchFlags {
  readonly group?: true;
  readonly poll?: number;
}

/** Adds the flags for how paths are watched. */
export function addWatchFlags(command: Command): Command {
  return command
    .optionsGroup('How paths are watched:')
    .option('--group', 'treat the paths as one: changes that belong together are handled once')
    .option('--poll <duration>', 'check this often instead of listening for events', duration);
}

/**
 * Creates watchers for the paths, one for each or one for the group. They are not started; the first state is a
 * change, too.
 */
export function createWatchers(
  paths: readonly string[],
  { group, poll }: WatchFlags,
  session: Session,
  onChange: (change: Change, path: string) => void,
): ResilientWatcher[] {
  const targets = group && paths.length > 1 ? [paths] : paths;
  return targets.map((target) => {
    const watcher = new ResilientWatcher(target, {
      name: [target].flat().join(' '),
      signal: session.signal,
      ...(poll !== undefined && { backend: 'poll', pollIntervalMs: poll }),
    });
    report(watcher, session);
    watcher.on('change', (change) => onChange(change, watcher.path));
    return session.closeAtEnd(watcher);
  });
}

/** Resolves when all watchers have reported the present contents. */
export async function startWatchers(watchers: readonly ResilientWatcher[]): Promise<void> {
  await Promise.all(watchers.map((watcher) => watcher.start()));
}

function report(watcher: ResilientWatcher, { output }: Session): void {
  const { path } = watcher;
  watcher.on('change', ({ added, changed, removed, current, cause }) => {
    const revision = current.revision ?? null;
    const keys = [...added.map((key) => `+${key}`), ...changed, ...removed.map((key) => `-${key}`)];
    const fields = { path, kind: current.kind, added, changed, removed, revision, cause };
    output.log(
      'info',
      'change',
      `${path}: ${current.kind === 'missing' ? 'missing' : keys.join(' ')}`,
      fields,
    );
  });
  watcher.on('revision', ({ current }) => {
    output.log('debug', 'revision', `${path}: new revision ${current}, same contents`, {
      path,
      revision: current,
    });
  });
  watcher.on('restart', ({ attempt, delayMs }) => {
    output.log('debug', 'restart', `${path}: watching again, attempt ${attempt}`, { path, attempt, delayMs });
  });
  watcher.on('degraded', ({ error: { message, code } }) => {
    output.log('warn', 'degraded', message, { path, code });
  });
  watcher.on('recovered', () =>
    output.log('info', 'recovered', `${path}: listening for events again`, { path }),
  );
  watcher.on('unreadable', ({ error }) => output.log('warn', 'unreadable', error.message, { path }));
  watcher.on('readable', () => output.log('info', 'readable', `${path}: can be read again`, { path }));
  watcher.on('warning', ({ code, message }) => {
    output.log('warn', 'warning', `${path}: ${message}`, { path, code });
  });
  watcher.on('error', (error) => output.log('error', 'error', `${path}: ${error.message}`, { path }));
}
