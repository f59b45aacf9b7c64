/** The watchers of `watch`, `run` and `wait`, and the output about them. */
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

/** The message of the library names options that this program does not have. */
const ABOVE_LIMIT =
  'some files are too large or too many to be read; they are compared by inode and timestamps';

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
    report(watcher, session);
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

function report(watcher: ResilientWatcher, { output }: Session): void {
  const { path } = watcher;
  watcher.on('change', ({ added, changed, removed, current, cause }) => {
    const { kind, revision = null } = current;
    const keys = [...changed, ...added.map((key) => `+${key}`), ...removed.map((key) => `-${key}`)];
    const shown = cause === 'start' ? ['found', ...added] : ['changed', ...keys];
    const isEmpty = added.length + keys.length === 0;
    const message = `${path}: ${kind === 'missing' ? 'missing' : isEmpty ? 'empty' : shown.join(' ')}`;
    output.log('info', 'change', message, { path, kind, added, changed, removed, revision, cause });
  });
  watcher.on('revision', ({ current: revision }) => {
    output.log('debug', 'revision', `${path}: new revision ${revision}, same contents`, { path, revision });
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
    output.log('warn', 'warning', `${path}: ${code === 'limit' ? ABOVE_LIMIT : message}`, { path, code });
  });
  watcher.on('error', (error) => output.log('error', 'error', `${path}: ${error.message}`, { path }));
}
