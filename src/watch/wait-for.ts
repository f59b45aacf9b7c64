import { withDeadline } from '../core/scheduling/deadline.js';
import { TargetError } from '../fs/target-error.js';
import { divideOptions, matching } from '../core/options/options.js';
import { systemClock } from '../core/ports/clock.js';
import type { Snapshot } from '../fs/snapshot.js';
import type { TargetPath } from '../fs/targets/target-at.js';
import { ResilientWatcher } from './resilient-watcher.js';
import { WATCHER_OPTION_NAMES, type ResilientWatcherOptions } from './watcher-options.js';

/** Options of `waitFor`, in addition to those of `ResilientWatcher`. All are optional. */
export interface WaitForOptions extends ResilientWatcherOptions {
  /** How long to wait, ms. Default: no limit. */
  readonly timeoutMs?: number | undefined;
}

const OPTIONS = {
  timeoutMs: matching<number>(
    Number.MAX_SAFE_INTEGER,
    'a number > 0 (ms)',
    (value) => typeof value === 'number' && value > 0,
  ),
};

/** May be asynchronous, because a promise would otherwise count as true. */
type Predicate = (snapshot: Snapshot) => boolean | Promise<boolean>;

const isSomething = ({ kind }: Snapshot): boolean => kind !== 'missing';

/**
 * Resolves to the first snapshot in which the target exists: at once if it does now.
 *
 * ```ts
 * await waitFor('/var/run/secrets/token', { timeoutMs: 60_000 });
 * ```
 * @throws {TargetError} (rejects) `ERR_TARGET_TIMEOUT` after `timeoutMs`; the signal's reason when that aborts.
 * @throws {TypeError | RangeError} (rejects) for a wrong argument.
 */
export function waitFor(path: TargetPath, options?: WaitForOptions): Promise<Snapshot>;
/**
 * Resolves to the first snapshot that satisfies the predicate: at once if it does now.
 *
 * ```ts
 * const pair = await waitFor('/etc/tls', ({ files }) => files.has('tls.crt') && files.has('tls.key'));
 * ```
 * @param predicate the condition to wait for; by default, that the target exists. It may be asynchronous. If it throws or
 * rejects, the promise rejects with that error.
 * @throws {TargetError} (rejects) `ERR_TARGET_TIMEOUT` after `timeoutMs`; the signal's reason when that aborts.
 * @throws {TypeError | RangeError} (rejects) for a wrong argument.
 */
export function waitFor(
  path: TargetPath,
  predicate: ((snapshot: Snapshot) => boolean | Promise<boolean>) | undefined,
  options?: WaitForOptions,
): Promise<Snapshot>;
export async function waitFor(
  path: TargetPath,
  predicateOrOptions?: Predicate | WaitForOptions,
  given?: WaitForOptions,
): Promise<Snapshot> {
  const [predicate, all] =
    typeof predicateOrOptions === 'function'
      ? [predicateOrOptions, given]
      : [isSomething, predicateOrOptions ?? given];
  const { own: settings, rest: options } = divideOptions('waitFor', all, OPTIONS, WATCHER_OPTION_NAMES);
  const { clock = systemClock, signal = new AbortController().signal } = options;
  const watcher = new ResilientWatcher(path, options);
  const late = (): TargetError => {
    const { target } = watcher.status();
    const found = target === 'missing' || target === 'unreadable' ? target : `a ${target}`;
    const state = target === null ? 'it has not been read yet' : `it is ${found}`;
    const message = `"${watcher.path}" is not as expected after ${settings.timeoutMs} ms; ${state}`;
    return new TargetError('ERR_TARGET_TIMEOUT', watcher.path, message);
  };
  const limitMs = Math.min(settings.timeoutMs, Number.MAX_SAFE_INTEGER);
  try {
    const work = (): Promise<Snapshot> => firstMatch(watcher, predicate);
    return await withDeadline(work, { clock, timeoutMs: limitMs, signal, late });
  } finally {
    await watcher.close();
  }
}

async function firstMatch(watcher: ResilientWatcher, predicate: Predicate): Promise<Snapshot> {
  await watcher.start();
  // Begun before the predicate is awaited, so that no change is missed.
  const changes = watcher[Symbol.asyncIterator]();
  // A target that is missing from the start is not reported as a change.
  const { current: first } = watcher;
  if (first && (await predicate(first))) return first;
  for await (const { current } of changes) {
    // The iterator begins with the last change.
    if (current !== first && (await predicate(current))) return current;
  }
  // The promise has already been rejected by the end of the watcher.
  return new Promise(() => {});
}
