/** The watchers of `watch`, `run` and `wait`. */
import { join } from 'node:path';

import type { Command } from 'commander';
import { ResilientWatcher, type Change, type Scheduled } from 'resilient-watcher';
import { Globs, withDeadline } from 'resilient-watcher/internal';

import { mergeUpdates, type ActionUpdate } from './action.js';
import { delay, duration, each, glob } from './arguments.js';
import type { Execution } from './execution.js';

/** How paths are watched. */
export interface WatchFlags {
  readonly poll?: number;
  readonly recursive?: true;
  readonly settle?: number;
  readonly ignore?: readonly string[];
}

/** Adds the flag for where events come from. */
export function addPollFlag(command: Command): Command {
  return command
    .optionsGroup('How paths are watched:')
    .option('--poll <duration>', 'poll at this interval instead of listening for events', duration);
}

/** Adds the flags for how paths are watched. */
export function addWatchFlags(command: Command): Command {
  return addPollFlag(command)
    .option('--recursive', 'watch the folders below each directory, too')
    .option(
      '--ignore <glob>',
      "files that cause no action, such as '**/*.tmp' (repeatable); editors' leftovers never do",
      each(glob),
    )
    .option(
      '--settle <duration>',
      'with several paths: how long a change of one waits for the others (default: 200ms)',
      delay,
    );
}

const leftovers = new Globs(Globs.LEFTOVERS);

/** The change without what is to cause no action; undefined if nothing is left of it. */
export function relevant(change: Change, { ignore = [] }: WatchFlags): Change | undefined {
  const { added, changed, removed, current, previous } = change;
  const globs = new Globs(ignore);
  // kubelet's keys are nobody's leftovers.
  const isEdited = [current.kind, previous.kind].some((kind) => kind === 'directory' || kind === 'tree');
  const isIgnored = (key: string): boolean =>
    (isEdited && leftovers.matches(key)) ||
    key.split('/').some((_, index, names) => globs.matches(names.slice(0, index + 1).join('/')));
  const left = (keys: readonly string[]): readonly string[] => keys.filter((key) => !isIgnored(key));
  const kept = { ...change, added: left(added), changed: left(changed), removed: left(removed) };
  const lengthOf = (of: Change): number => of.added.length + of.changed.length + of.removed.length;
  return lengthOf(kept) === 0 && lengthOf(change) > 0 ? undefined : kept;
}

/** As `groupSettleMs` of the library, ms: kubelet publishes the volumes of a pod one after another. */
const SETTLE_MS = 200;

/**
 * Makes one update of what changes at several paths together: the change of a path waits for those of the others, until
 * all have changed or no further one has changed for `settle`. One path waits for nobody.
 */
export function settled(
  { paths, settle = SETTLE_MS }: { readonly paths: readonly string[]; readonly settle: number | undefined },
  { signal, io: { clock } }: Execution,
  handle: (update: ActionUpdate) => void,
): (update: ActionUpdate) => void {
  let waiting: ActionUpdate | undefined;
  let timer: Scheduled | undefined;
  const flush = (): void => {
    const update = waiting;
    waiting = undefined;
    if (update && !signal.aborted) handle(update);
  };
  return (update) => {
    const known = waiting?.paths.length ?? 0;
    waiting = waiting ? mergeUpdates(waiting, update) : update;
    const { length } = waiting.paths;
    if (length === known) return;
    timer?.cancel();
    if (length >= paths.length || settle === 0) flush();
    else timer = clock.schedule(flush, settle);
  };
}

/** How long the first checks may take before the program works with what is known, ms. */
const FIRST_CHECKS_MS = 10_000;

/** With `--poll`, the regular checks of a watcher must not be more frequent than the polls, ms. */
const RESYNC_MS = 5_000;

/** Creates a watcher for each path. They are not started; the first state is a change, too. */
export function createWatchers(
  paths: readonly string[],
  { poll, recursive }: WatchFlags,
  execution: Execution,
  onChange: (change: Change, watcher: ResilientWatcher) => void,
): ResilientWatcher[] {
  const polling = poll !== undefined && {
    backend: 'poll' as const,
    pollIntervalMs: poll,
    resyncIntervalMs: Math.max(poll, RESYNC_MS),
  };
  return paths.map((path) => {
    const options = {
      name: path,
      signal: execution.signal,
      clock: execution.io.clock,
      recursive,
      ...polling,
    };
    const watcher = execution.closeAtEnd(new ResilientWatcher(path, options));
    watcher.on('revision', ({ current: revision }) => {
      execution.output.log('debug', 'revision', `${path}: new revision ${revision}, same contents`, {
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
export function reportMissing(missing: readonly string[], { output }: Execution): void {
  if (missing.length > 0) output.log('info', 'waiting', `waiting for ${missing.join(', ')}`, { missing });
}

/**
 * Resolves when the current contents of all paths are known. Does not wait longer than ten seconds for a file system that
 * does not answer.
 */
export async function startWatchers(
  watchers: readonly ResilientWatcher[],
  { output, io: { clock } }: Execution,
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
