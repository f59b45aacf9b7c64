/** The watchers of `watch`, `run` and `wait`, and the output about them. */
import { basename, resolve } from 'node:path';

import type { Command } from 'commander';

import { updateOf, type ActionUpdate } from '../action.js';
import { systemClock } from '../core/clock.js';
import { withDeadline } from '../core/deadline.js';
import { ResilientWatcher, type Change, type Digests, type KeyDifference } from '../index.js';
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
    .option('--group', 'treat the files as one: changes that belong together are handled once')
    .option('--poll <duration>', 'check this often instead of listening for events', duration);
}

/** How long the first checks may take before the program works with what is known, ms. */
const FIRST_CHECKS_MS = 10_000;

/** Polling is checking; the checks that a watcher makes in any case must not be more frequent than asked for, ms. */
const RESYNC_MS = 5_000;

/** The watcher of one path, or of a group of them. */
export class WatchedPaths {
  readonly watcher: ResilientWatcher;
  /** Absolute. */
  readonly paths: readonly string[];
  /** The keys of a group by the absolute paths; undefined for a single path. */
  readonly #keys: ReadonlyMap<string, string> | undefined;

  constructor(given: string | readonly string[], { poll }: WatchFlags, session: Session) {
    const members = [given].flat();
    this.paths = members.map((path) => resolve(path));
    this.#keys =
      typeof given === 'string' ? undefined : new Map(members.map((path) => [resolve(path), path]));
    this.watcher = new ResilientWatcher(given, {
      name: members.join(' '),
      signal: session.signal,
      ...(poll !== undefined && {
        backend: 'poll',
        pollIntervalMs: poll,
        resyncIntervalMs: Math.max(poll, RESYNC_MS),
      }),
    });
    session.closeAtEnd(this.watcher);
  }

  /** Those of the paths at which nothing has been seen, or not any more. */
  get missing(): readonly string[] {
    const { current } = this.watcher;
    if (!current || current.kind === 'missing') return this.paths;
    return this.#keys ? this.paths.filter((path) => !current.files.has(this.#keyOf(path))) : [];
  }

  /** What was last reported of one of the paths, as if it were watched alone. */
  digestsAt(path: string): Digests {
    const digests = this.watcher.digests();
    if (!this.#keys) return digests;
    const digest = digests[this.#keyOf(path)];
    return digest === undefined ? {} : { [basename(path)]: digest };
  }

  /** What differs at one of the paths from the result of `digestsAt()`, which may be that of another rule. */
  changedAt(path: string, digests: Digests): KeyDifference {
    if (!this.#keys) return this.watcher.changedSince(digests);
    const key = this.#keyOf(path);
    const digest = digests[basename(path)];
    const difference = this.watcher.changedSince(digest === undefined ? {} : { [key]: digest });
    const own = (keys: readonly string[]): string[] => keys.filter((each) => each === key);
    const { added, changed, removed } = difference;
    return { added: own(added), changed: own(changed), removed: own(removed) };
  }

  /** The input of an action. Each file of a group is a path of its own, as if it were watched alone. */
  updateOf(change: Omit<Change, 'previous'>): ActionUpdate {
    if (!this.#keys) return updateOf(change, this.watcher.path);
    const { added, changed, removed, cause } = change;
    const paths = [...this.#keys].flatMap(([file, key]) => {
      const only = (keys: readonly string[]): string[] => (keys.includes(key) ? [basename(file)] : []);
      const [isAdded, isChanged, isRemoved] = [only(added), only(changed), only(removed)];
      if (isAdded.length + isChanged.length + isRemoved.length === 0) return [];
      return updateOf({ ...change, added: isAdded, changed: isChanged, removed: isRemoved }, file).paths;
    });
    return { paths, cause };
  }

  #keyOf(path: string): string {
    return this.#keys?.get(path) ?? path;
  }
}

/**
 * Creates watchers for the paths, one for each or one for the group. They are not started; the first state is a
 * change, too.
 */
export function createWatchers(
  paths: readonly string[],
  flags: WatchFlags,
  session: Session,
  onChange: (change: Change, watched: WatchedPaths) => void,
): WatchedPaths[] {
  const targets = flags.group && paths.length > 1 ? [paths] : paths;
  return targets.map((target) => {
    const watched = new WatchedPaths(target, flags, session);
    report(watched.watcher, session);
    watched.watcher.on('change', (change) => onChange(change, watched));
    return watched;
  });
}

/**
 * Resolves when the present contents of all paths are known. A path on a file system that does not answer is waited for
 * only for a while.
 */
export async function startWatchers(
  watched: readonly WatchedPaths[],
  { output, signal }: Session,
): Promise<void> {
  const pending = new Set(watched);
  const start = async (one: WatchedPaths): Promise<void> => {
    await one.watcher.start();
    pending.delete(one);
  };
  const late = new Error('the first checks take too long');
  await withDeadline(() => Promise.all(watched.map(start)), {
    clock: systemClock,
    timeoutMs: FIRST_CHECKS_MS,
    signal,
    late: () => late,
  }).catch((error: unknown) => {
    if (error !== late) throw error;
    for (const { watcher } of pending) {
      const { path } = watcher;
      output.log(
        'warn',
        'unanswered',
        `${path}: the file system does not answer; the path is used once it does`,
        {
          path,
        },
      );
    }
  });
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
