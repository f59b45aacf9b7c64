/** The watchers of `watch`, `run` and `wait`. */
import { join } from 'node:path';

import type { Command } from 'commander';
import { ResilientWatcher, type Change } from 'resilient-watcher';
import { withDeadline } from 'resilient-watcher/internal';

import { duration } from './arguments.js';
import type { Session } from './session.js';

/** How paths are watched. */
export interface WatchFlags {
  readonly poll?: number;
  readonly recursive?: true;
}

/** Adds the flag for where events come from. */
export function addPollFlag(command: Command): Command {
  return command
    .optionsGroup('How paths are watched:')
    .option('--poll <duration>', 'poll at this interval instead of listening for events', duration);
}

/** Adds the flags for how paths are watched. */
export function addWatchFlags(command: Command): Command {
  return addPollFlag(command).option('--recursive', 'watch the folders below each directory, too');
}

/** How long the first checks may take before the program works with what is known, ms. */
const FIRST_CHECKS_MS = 10_000;

/** With `--poll`, the regular checks of a watcher must not be more frequent than the polls, ms. */
const RESYNC_MS = 5_000;

/** Creates a watcher for each path. They are not started; the first state is a change, too. */
export function createWatchers(
  paths: readonly string[],
  { poll, recursive }: WatchFlags,
  session: Session,
  onChange: (change: Change, watcher: ResilientWatcher) => void,
): ResilientWatcher[] {
  const polling = poll !== undefined && {
    backend: 'poll' as const,
    pollIntervalMs: poll,
    resyncIntervalMs: Math.max(poll, RESYNC_MS),
  };
  return paths.map((path) => {
    const options = { name: path, signal: session.signal, clock: session.io.clock, recursive, ...polling };
    const watcher = session.closeAtEnd(new ResilientWatcher(path, options));
    watcher.on('revision', ({ current: revision }) => {
      session.output.log('debug', 'revision', `${path}: new revision ${revision}, same contents`, {
        path,
        revision,
      });
    });
    watcher.on('change', (change) => onChange(change, watcher));
    return watcher;
  });
}

/** The paths that do not exist, and those of keys that are missing or empty, as far as is known. */
export function missingPaths(watchers: readonly ResilientWatcher[], keys: readonly string[] = []): string[] {
  return watchers.flatMap(({ path, current }) => {
    if (!current || current.kind === 'missing') return [path];
    // A file that is written in place is empty at first.
    return keys.filter((key) => !current.files.get(key)?.size).map((key) => join(path, key));
  });
}

/** Prints what is waited for. */
export function reportMissing(missing: readonly string[], { output }: Session): void {
  if (missing.length > 0) output.log('info', 'waiting', `waiting for ${missing.join(', ')}`, { missing });
}

/**
 * Resolves when the current contents of all paths are known. Does not wait longer than ten seconds for a file system that
 * does not answer.
 */
export async function startWatchers(
  watchers: readonly ResilientWatcher[],
  { output, io: { clock } }: Session,
): Promise<void> {
  const pending = new Set(watchers);
  const start = () =>
    Promise.all(watchers.map((watcher) => watcher.start().then(() => pending.delete(watcher))));
  const late = new Error('no answer');
  const deadline = { clock, timeoutMs: FIRST_CHECKS_MS, late: () => late };
  await withDeadline(start, deadline).catch((error: unknown) => {
    if (error !== late) throw error;
    for (const { path } of pending) {
      const message = `${path}: the file system does not answer; the path is used once it does`;
      output.log('warn', 'unanswered', message, { path });
    }
  });
}
