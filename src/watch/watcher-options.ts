import {
  fileSystem,
  flag,
  hasMethods,
  matching,
  milliseconds,
  PORT_OPTIONS,
  resolveOptions,
  type Option,
} from '../core/options.js';
import { PathGlobs } from '../fs/path-globs.js';
import type { Clock } from '../core/clock.js';
import type { FileSystem } from '../core/file-system.js';
import type { Random } from '../core/random.js';
import type { WatchBackend } from '../core/watch-backend.js';
import { READ_CALLS, READ_LIMITS } from '../fs/targets/read-limits.js';

/** The backends by name. */
export type BackendName = 'auto' | 'fs' | 'parcel' | 'poll';

/** Options of `ResilientWatcher`; all may be left out, and `undefined` means the default. */
export interface ResilientWatcherOptions {
  /**
   * Where hints come from. `auto` (default) takes `fs`, then `parcel`, and polls while neither can be had; for a tree
   * of more than 4 096 directories, and for any tree where the system is not Linux, `parcel` comes first.
   * An object with the `WatchBackend` interface is used as it is.
   */
  readonly backend?: BackendName | WatchBackend | undefined;
  /** How long a target may be gone before that is reported, ms. Default 500: longer than a remove-and-link swap. */
  readonly missingGraceMs?: number | undefined;
  /** How long a file written in place must be quiet before it is reported, ms. Default 50. */
  readonly settleMs?: number | undefined;
  /** A file that is never quiet is reported at least this often, as it then stands, ms. Default 10 000. */
  readonly maxSettleMs?: number | undefined;
  /** How often the target is looked at without any hint, ms. Default 5 000; 0: never. */
  readonly resyncIntervalMs?: number | undefined;
  /** How often it is looked at while native watching cannot be had, ms. Default 1 000. */
  readonly pollIntervalMs?: number | undefined;
  /** The longest first delay before a dead backend is subscribed again, ms. Doubles each time. Default 50. */
  readonly restartDelayMs?: number | undefined;
  /** No delay between attempts is longer, ms. Default 5 000. */
  readonly maxRestartDelayMs?: number | undefined;
  /** How many attempts in a row before it stays with polling. Default `Infinity`. */
  readonly maxRestarts?: number | undefined;
  /**
   * How long the files of a group wait for each other when the link to some of them was retargeted and that to
   * others was not, ms. Default 200.
   */
  readonly groupSettleMs?: number | undefined;
  /** Watches the path as a tree: the directory with all that is below it. Default false. */
  readonly recursive?: boolean | undefined;
  /**
   * Of a tree: globs relative to its root (`**` any directories, `*` within a name, dots are no exception); what they
   * match is left out, with all below it. Default none.
   */
  readonly ignore?: readonly string[] | undefined;
  /** Of a tree: whether links to directories are followed, each directory once. Default false. */
  readonly followLinks?: boolean | undefined;
  /** Of a tree: whether files are read; if not, they are told apart by identity. Default false. */
  readonly content?: boolean | undefined;
  /** Contents of files up to this size come with the change, bytes. Default 1 MiB. */
  readonly maxContentBytes?: number | undefined;
  /** Of more bytes than this altogether only the digests are kept. Default 64 MiB. */
  readonly maxTotalBytes?: number | undefined;
  /** Of a directory with more files than this none is read; they are told apart by identity. Default 16 384. */
  readonly maxFiles?: number | undefined;
  /** Whether watching keeps the process alive. Default true. */
  readonly persistent?: boolean | undefined;
  /** Closes the watcher when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** Default: the machine's own. */
  readonly clock?: Clock | undefined;
  /** Default: the machine's own. */
  readonly random?: Random | undefined;
  /** Default: the machine's own. */
  readonly fs?: FileSystem | undefined;
}

const BACKEND_NAMES: readonly unknown[] = ['auto', 'fs', 'parcel', 'poll'];

const restarts: Option<number> = {
  fallback: Infinity,
  refuse: (value) => {
    const wanted = 'a whole number >= 0, or Infinity';
    if (typeof value !== 'number') return { kind: 'type', wanted };
    return value === Infinity || (Number.isInteger(value) && value >= 0)
      ? undefined
      : { kind: 'range', wanted };
  },
};

const OPTIONS = {
  backend: matching<BackendName | WatchBackend>(
    'auto',
    'one of "auto", "fs", "parcel", "poll", or an object with name and subscribe',
    (value) => BACKEND_NAMES.includes(value) || (hasMethods(value, ['subscribe']) && hasName(value)),
  ),
  // Hand-made publishers remove the link, do some work and link again; tests of others allow 50 ms for it.
  missingGraceMs: milliseconds(500),
  // Two writes of one program are rarely further apart, and nobody waits for a config file 50 ms in vain.
  settleMs: milliseconds(50),
  // A log file should not be silent for ever; a config file is never written for that long.
  maxSettleMs: milliseconds(10_000),
  // kubelet projects the volumes of a pod in rounds 100 ms apart: two of them.
  groupSettleMs: milliseconds(200),
  // A look costs tens of microseconds: at 5 s a thousand watchers take well under 1 % of a core.
  resyncIntervalMs: milliseconds(5_000),
  // Without native hints this is the latency; kubelet itself takes about a minute to project an update.
  pollIntervalMs: milliseconds(1_000, { min: 1 }),
  restartDelayMs: milliseconds(50, { min: 1 }),
  maxRestartDelayMs: milliseconds(5_000, { min: 1 }),
  maxRestarts: restarts,
  recursive: flag(false),
  ignore: matching<readonly string[]>([], 'an array of globs', isGlobs),
  followLinks: flag(false),
  content: flag(false),
  ...READ_LIMITS,
  persistent: flag(true),
  ...PORT_OPTIONS,
  fs: fileSystem(...READ_CALLS, 'statfs'),
};

function isGlobs(value: unknown): boolean {
  if (!Array.isArray(value) || !value.every((glob) => typeof glob === 'string' && glob !== '')) return false;
  try {
    return new PathGlobs(value as string[]).expressions.length === value.length;
  } catch {
    return false;
  }
}

function hasName(value: unknown): boolean {
  return typeof (value as { readonly name?: unknown }).name === 'string';
}

/** The options of a watcher, complete and checked. */
export type ResolvedWatcherOptions = ReturnType<typeof resolveWatcherOptions>;

/**
 * Fills in the defaults.
 * @throws {TypeError} for an unknown option or one of the wrong type.
 * @throws {RangeError} for a number out of range.
 */
// eslint-disable-next-line @typescript-eslint/explicit-module-boundary-types -- derived from the table above
export function resolveWatcherOptions(given: ResilientWatcherOptions | undefined) {
  return resolveOptions('ResilientWatcher', given, OPTIONS);
}
