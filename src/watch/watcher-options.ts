import {
  fileSystem,
  flag,
  hasMethods,
  matching,
  milliseconds,
  nonEmptyString,
  PORT_OPTIONS,
  resolveOptions,
} from '../core/options/options.js';
import { READING_CALLS, type ReadingCalls } from '../fs/calls.js';
import { patterns, type IgnorePattern } from '../fs/globs.js';
import type { Clock } from '../core/ports/clock.js';
import type { Random } from '../core/ports/random.js';
import type { WatchBackend } from '../core/ports/watch-backend.js';
import type { ReadVolumeOptions } from '../fs/read-volume.js';
import { READ_LIMITS } from '../fs/read-limits.js';
import { BACKEND_NAMES, type BackendName } from './backends/catalog.js';

/** How a directory is watched recursively. All options are optional. */
export interface TreeWatchOptions {
  /**
   * Globs relative to the directory (`**`: any directories, `*`: part of a name, also a dot), regular expressions, or
   * functions of the relative path, with `/` between its parts. Matching paths are excluded, with everything below
   * them. A function is called often, so it should be fast, and it must not throw. Default: none.
   */
  readonly ignore?: readonly IgnorePattern[] | undefined;
  /**
   * Patterns like those of `ignore`. Of the files that `ignore` leaves, only those that one of them matches are watched.
   * Directories need not match: they are searched. Default: all files.
   */
  readonly include?: readonly IgnorePattern[] | undefined;
  /**
   * Whether links to directories are followed. Each directory has one key: its own path in the tree, or the first by
   * name of those that links lead to. Default false.
   */
  readonly followLinks?: boolean | undefined;
  /** Whether files are read. If not, they are compared by inode, size and timestamps. Default true. */
  readonly content?: boolean | undefined;
}

/** Options of `ResilientWatcher`. All are optional, and `undefined` means the default. */
export interface ResilientWatcherOptions extends Pick<
  ReadVolumeOptions,
  'maxContentBytes' | 'maxTotalBytes' | 'maxFiles'
> {
  /** The name of the watcher in its status and telemetry. Default: the base name of the path. */
  readonly name?: string | undefined;
  /**
   * Where hints come from. `auto` (default) is `fs`. While a backend is not available, or where there are no events, the
   * target is polled. An object with the `WatchBackend` interface is used directly.
   */
  readonly backend?: BackendName | WatchBackend | undefined;
  /** How long a target may be missing or unreadable before that is reported, ms. Default 500. */
  readonly missingGraceMs?: number | undefined;
  /** How long a file that is written in place must be quiet before it is reported, ms. Default 50. */
  readonly settleMs?: number | undefined;
  /** How often the current contents of a file that is never quiet are reported, ms. Default 10,000. */
  readonly maxSettleMs?: number | undefined;
  /**
   * How often the target is checked even without a hint, ms. Default 5,000; 0: never. Each of these checks verifies
   * only a part of a large set: the next 500 files, and in a directory or a tree the next 500 directories. So all `n`
   * files are verified within `n / 500` intervals.
   */
  readonly resyncIntervalMs?: number | undefined;
  /** How often the target is checked while native watching is unavailable, ms. Default 1,000. */
  readonly pollIntervalMs?: number | undefined;
  /**
   * The initial delay before a failed backend is subscribed again, ms. Doubled on each failure, with up to 50% jitter.
   * Default 50. This and the next option are refused with the backend `poll`, where they have no effect.
   */
  readonly restartDelayMs?: number | undefined;
  /** The maximum delay between two attempts, ms. Default 5,000. */
  readonly maxRestartDelayMs?: number | undefined;
  /**
   * How long the files of a group wait for each other when the links to some of them have been retargeted and those to
   * others have not, ms. Default 200. Only for an array of paths.
   */
  readonly groupSettleMs?: number | undefined;
  /** Whether a directory is watched recursively, or how. Default false: only the files in the directory itself. */
  readonly recursive?: boolean | TreeWatchOptions | undefined;
  /** Whether watching keeps the process alive. Default true. */
  readonly persistent?: boolean | undefined;
  /** Closes the watcher when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** Default: the system's clock. */
  readonly clock?: Clock | undefined;
  /** Default: `Math.random`. */
  readonly random?: Random | undefined;
  /** Default: `node:fs`. */
  readonly fs?: ReadingCalls | undefined;
}

/** kubelet projects the volumes of a pod in rounds 100 ms apart: this is two rounds. */
export const GROUP_SETTLE_MS = 200;

const OPTIONS = {
  name: nonEmptyString(undefined),
  backend: matching<BackendName | WatchBackend>(
    'auto',
    `one of ${BACKEND_NAMES.map((name) => `"${name}"`).join(', ')}, or an object with name and subscribe`,
    (value) =>
      BACKEND_NAMES.includes(value as string) || (hasMethods(value, ['subscribe']) && hasName(value)),
  ),
  // Simple publishers remove the link, do some work and link again; other libraries test with gaps of 50 ms.
  missingGraceMs: milliseconds(500),
  // Two writes of one program are rarely further apart, and 50 ms is no noticeable delay for a configuration file.
  settleMs: milliseconds(50, { atMost: 'maxSettleMs' }),
  // A log file should be reported now and then; a configuration file is never written for that long.
  maxSettleMs: milliseconds(10_000),
  groupSettleMs: milliseconds(GROUP_SETTLE_MS),
  // A check takes tens of microseconds: at 5 s, a thousand watchers use well under 1% of a core.
  resyncIntervalMs: milliseconds(5_000),
  // Without events this is the latency; kubelet itself takes about a minute to project an update.
  pollIntervalMs: milliseconds(1_000, { min: 1 }),
  restartDelayMs: milliseconds(50, { min: 1, atMost: 'maxRestartDelayMs' }),
  maxRestartDelayMs: milliseconds(5_000, { min: 1 }),
  recursive: matching<boolean | TreeWatchOptions>(
    false,
    'a boolean or an object with ignore, include, followLinks, content',
    (value) => typeof value === 'boolean' || (typeof value === 'object' && value !== null),
  ),
  ...READ_LIMITS,
  persistent: flag(true),
  ...PORT_OPTIONS,
  fs: fileSystem(...READING_CALLS),
};

/** The names of all options of a watcher, for classes that pass them on. */
export const WATCHER_OPTION_NAMES: readonly string[] = Object.keys(OPTIONS);

const TREE_OPTIONS = {
  ignore: patterns<readonly IgnorePattern[]>([], '**/*.tmp'),
  include: patterns<undefined>(undefined, '**/*.md'),
  followLinks: flag(false),
  content: flag(true),
};

const OWNER = 'ResilientWatcher';

/** The options of a watcher, complete and validated. */
export type ResolvedWatcherOptions = ReturnType<typeof resolveWatcherOptions>['options'];

/**
 * Fills in the defaults; watchers without options share one object.
 * @returns `tree`: how a directory is watched recursively; undefined if it is not.
 * @throws {TypeError} for an unknown option, one of the wrong type, or one that has no effect in this combination.
 * @throws {RangeError} for a number out of range.
 */
// eslint-disable-next-line @typescript-eslint/explicit-module-boundary-types -- derived from the tables above
export function resolveWatcherOptions(
  given: ResilientWatcherOptions | undefined,
  { isGroup }: { readonly isGroup: boolean },
) {
  refuseMisplaced(given);
  const options = resolveOptions(OWNER, given, OPTIONS);
  const { recursive } = options;
  const tree =
    recursive === false
      ? undefined
      : resolveOptions(`${OWNER}: recursive`, recursive === true ? {} : recursive, TREE_OPTIONS);
  const refuse = (names: readonly (keyof ResilientWatcherOptions)[], reason: string): void => {
    const name = names.find((each) => given?.[each] !== undefined);
    if (name !== undefined) throw new TypeError(`${OWNER}: option "${name}" has no effect ${reason}`);
  };
  if (!isGroup) refuse(['groupSettleMs'], 'on a single path: it is for an array of paths');
  if (isGroup && tree) {
    throw new TypeError(
      `${OWNER}: an array of paths cannot be watched with "recursive"; use one watcher for each`,
    );
  }
  if (options.backend === 'poll') {
    refuse(['restartDelayMs', 'maxRestartDelayMs'], 'with the backend "poll", which cannot be lost');
  }
  if (tree?.content === false) {
    refuse(
      ['maxContentBytes', 'maxTotalBytes', 'maxFiles'],
      'with "recursive.content": false, where nothing is read',
    );
  }
  return { options, tree };
}

function refuseMisplaced(given: unknown): void {
  if (typeof given !== 'object' || given === null) return;
  const name = Object.keys(TREE_OPTIONS).find((each) => Object.hasOwn(given, each));
  if (name === undefined) return;
  throw new TypeError(
    `${OWNER}: option "${name}" belongs inside "recursive", as in { recursive: { ${name}: … } }`,
  );
}

function hasName(value: unknown): boolean {
  return typeof (value as { readonly name?: unknown }).name === 'string';
}
