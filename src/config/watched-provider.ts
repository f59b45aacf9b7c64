import { toldPath } from '../core/ports/platform-path.js';
import { ConfigError } from './config-error.js';
import { asPart } from '../core/lifecycle/component.js';
import { ClosedError } from '../core/errors/errors.js';
import { ResilientError } from '../core/errors/resilient-error.js';
import { describe, flag, type Resolved } from '../core/options/options.js';
import { Globs, patterns, type IgnorePattern } from '../fs/globs.js';
import type { FileSnapshot, MissingSnapshot, Snapshot } from '../fs/snapshot.js';
import { READ_LIMITS } from '../fs/read-limits.js';
import type { Change } from '../watch/change.js';
import { ResilientWatcher } from '../watch/resilient-watcher.js';
import type { ResilientWatcherEvents } from '../watch/watcher-events.js';
import { WATCHER_OPTION_NAMES, type ResilientWatcherOptions } from '../watch/watcher-options.js';
import { expanded, EXPAND, type Variables } from './expansion.js';
import type { ConfigProvider, ProviderCallback, ProviderHealth } from './config-provider.js';
import type { ConfigMap } from './config-value.js';
import { PARSERS_OPTION } from './parser.js';
import { configError } from './problems.js';
import type { ConfigWarning } from './places.js';

/** Options of all providers that read from disk, including those of `ResilientWatcher`. */
export interface WatchedProviderOptions extends Omit<ResilientWatcherOptions, 'maxContentBytes'> {
  /** Whether the path may be missing; it then provides no values. Default false: reading a missing path fails. */
  readonly optional?: boolean | undefined;
  /**
   * Whether merge keys of YAML (`<<: *base`) are merged, as viper, koanf, Helm and js-yaml 4 do. Default false: a file with
   * a merge key is refused, because YAML 1.2 has none. In quotes, `<<` is an ordinary key.
   */
  readonly merge?: boolean | undefined;
  /**
   * Replaces `${NAME}` in texts: `true` by variables of the environment, an object by its own. `${NAME:-text}` is
   * `text` if the variable is unset or empty, and `$${` stands for `${`. What is put in is text, and is not read again;
   * keys stay as they are. An unknown variable is refused with line and column. Default false.
   */
  readonly expand?: boolean | Variables | undefined;
  /** The maximum size of a file, bytes; a larger one is refused. Default 1 MiB, the limit of a ConfigMap or Secret. */
  readonly maxBytes?: number | undefined;
}

/** The options that every provider has. */
export const PROVIDER_OPTIONS = {
  optional: flag(false),
  merge: flag(false),
  expand: EXPAND,
  maxBytes: READ_LIMITS.maxContentBytes,
};

/** Options of providers that read the files of a directory. */
export interface FilesOptions extends WatchedProviderOptions {
  /** The files that are provided, by name: globs, regular expressions or functions. Default: all. */
  readonly include?: readonly IgnorePattern[] | undefined;
  /** The files that are not, even if `include` matches them. Default: none. */
  readonly ignore?: readonly IgnorePattern[] | undefined;
}

const names = patterns(undefined, '*.yaml');

/** The same, checked, and the parsers, which not every directory needs. */
export const FILES_OPTIONS = {
  parsers: PARSERS_OPTION,
  include: names,
  ignore: names,
  ...PROVIDER_OPTIONS,
};

type ResolvedOptions = Resolved<typeof PROVIDER_OPTIONS> & Pick<FilesOptions, 'include' | 'ignore'>;

/** The names of the options that a provider passes on to its watcher. */
export const PROVIDER_WATCHER_OPTION_NAMES = WATCHER_OPTION_NAMES.filter(
  (name) => name !== 'maxContentBytes',
);

/**
 * The base of providers that read a path on disk. Watching can be stopped and started again.
 *
 * | state    | `watch()`               | a change, an error | `unwatch()` |
 * |----------|-------------------------|--------------------|-------------|
 * | idle     | → watching              | –                  | –           |
 * | watching | rejects, keeps watching | the callback       | → idle      |
 *
 * What the watcher has reported last is what is read next, until it reports that the path cannot be read. Otherwise the
 * disk is read, which yields the reason.
 */
export abstract class WatchedProvider implements ConfigProvider {
  /** The path, absolute. */
  readonly name: string;
  /** The digest of the last state read or reported: `sha256:…` of a file, `set:…` of a volume, or `missing`. */
  digest: string | undefined;
  /** What may surprise the author of the values last read, such as a `#` within a value of a `.env` file. */
  warnings: readonly ConfigWarning[] = [];
  protected readonly merge: boolean;
  readonly #variables: Variables | undefined;
  readonly #maxBytes: number;
  readonly #optional: boolean;
  readonly #include: Globs | undefined;
  readonly #ignore: Globs;
  readonly #newWatcher: () => ResilientWatcher;
  /** Reads the disk, and is never started. */
  readonly #disk: ResilientWatcher;
  #watcher: ResilientWatcher | undefined;
  /** What the watcher has reported last, while the path can be read. */
  #reported: Snapshot | undefined;

  /**
   * @param watching the options that are passed on to the watcher
   * @throws {TypeError | RangeError} for an invalid option of the watcher.
   */
  protected constructor(path: string, options: ResolvedOptions, watching: ResilientWatcherOptions) {
    const { optional, merge, expand, maxBytes, include, ignore = [] } = options;
    this.name = toldPath(path);
    this.merge = merge;
    this.#variables = expand === true ? process.env : expand || undefined;
    this.#optional = optional;
    this.#include = include && new Globs(include, 'include');
    this.#ignore = new Globs(ignore);
    this.#maxBytes = maxBytes;
    this.#newWatcher = () => new ResilientWatcher(this.name, { ...watching, maxContentBytes: maxBytes });
    this.#disk = this.#newWatcher();
  }

  abstract read(): Promise<unknown>;

  /**
   * Calls back after each change, including creation and deletion, and on each error; for a volume, after each revision
   * whose files differ. Once the promise has resolved, no change is missed; a change since the last read is reported
   * immediately. Watching never ends by itself. If the callback throws, it is called again with a `ListenerError`.
   * @throws {TypeError} (rejects) when the callback is not a function.
   * @throws {ConfigError} (rejects) `ERR_CONFIG_WATCHED` when the provider is already being watched.
   * @throws {ClosedError} (rejects) when `unwatch()` is called meanwhile; the signal's reason when that has aborted.
   */
  async watch(callback: ProviderCallback<Change>, health?: ProviderHealth): Promise<void> {
    if (typeof callback !== 'function') {
      throw new TypeError(`watch: the callback must be a function, got ${describe(callback)}`);
    }
    if (this.#running) {
      const advice = 'one provider has one watcher: create another provider for the same path';
      throw new ConfigError('ERR_CONFIG_WATCHED', `${this.name} is already being watched; ${advice}`);
    }
    const watcher = this.#newWatcher();
    this.#watcher = watcher;
    this.#reported = undefined;
    let begun = false;
    asPart<ResilientWatcherEvents>(watcher, {
      change: (change) => {
        const { digest } = (this.#reported = change.current);
        const isNews = begun || (this.digest !== undefined && this.digest !== digest);
        this.digest = digest;
        if (isNews) return callback(change, undefined);
      },
      unreadable: ({ error }) => {
        this.#reported = undefined;
        return callback(undefined, error);
      },
      readable: (readable) => {
        this.#reported = watcher.current;
        health?.readable(readable);
      },
      ...(health && {
        degraded: (degradation) => health.degraded(degradation),
        recovered: (recovery) => health.recovered(recovery),
      }),
    });
    watcher.on('error', (error) => callback(undefined, error));
    watcher.on('warning', ({ code, message }) => {
      // Contents above a limit are refused when they are read.
      if (code === 'subPath') return callback(undefined, new ConfigError('ERR_CONFIG_FROZEN', message));
    });
    try {
      await watcher.start();
      begun = true;
    } catch (error) {
      if (this.#watcher === watcher) await this.unwatch();
      throw error;
    }
    if (this.#watcher !== watcher) throw new ClosedError(`${this.name}: unwatch() was called during watch()`);
  }

  /**
   * Stops watching. The callback is not called again, even if it calls this method. `watch()` may be called again.
   * Never rejects.
   */
  async unwatch(): Promise<void> {
    const watcher = this.#watcher;
    this.#watcher = undefined;
    await watcher?.close();
  }

  /**
   * Checks the path at once if it is watched, so that reading it returns the current state. A difference is reported to
   * the callback.
   */
  async check(): Promise<void> {
    await this.#running?.check();
  }

  /**
   * The state of the path, as reported or from the disk; undefined if the path is missing and optional.
   * @param wanted the kind of target expected, for messages
   * @throws {ConfigError} (rejects) `ERR_CONFIG_MISSING`, `ERR_CONFIG_UNREADABLE`.
   */
  protected async snapshot(wanted: string): Promise<Exclude<Snapshot, MissingSnapshot> | undefined> {
    let snapshot = this.#running && this.#reported;
    try {
      snapshot ??= await this.#disk.snapshot();
    } catch (error) {
      if (!(error instanceof ResilientError)) throw error;
      throw configError('ERR_CONFIG_UNREADABLE', this.name, error.message);
    }
    this.digest = snapshot.digest;
    if (snapshot.kind !== 'missing') return snapshot;
    if (this.#optional) return undefined;
    throw configError('ERR_CONFIG_MISSING', this.name, `no such ${wanted}`);
  }

  /**
   * The selected files of a directory by name; undefined if it is missing and optional.
   * @throws {ConfigError} (rejects) the errors of `snapshot()`, also for a file.
   */
  protected async filesIn(): Promise<readonly (readonly [name: string, file: FileSnapshot])[] | undefined> {
    const snapshot = await this.snapshot('directory');
    if (snapshot?.kind === 'file') {
      throw configError('ERR_CONFIG_UNREADABLE', this.name, 'it is a file: use a FileProvider');
    }
    const isSelected = (name: string): boolean =>
      this.#include?.matches(name) !== false && !this.#ignore.matches(name);
    return snapshot && [...snapshot.files].filter(([name]) => isSelected(name));
  }

  /** The values with the variables in their texts, if the option `expand` asks for it. */
  protected async expanded(values: ConfigMap, source: string): Promise<ConfigMap> {
    return this.#variables ? expanded(values, this.#variables, { source, limit: this.#maxBytes }) : values;
  }

  /**
   * A copy of the bytes of a file.
   * @throws {ConfigError} `ERR_CONFIG_TOO_LARGE` when the file exceeds a limit.
   */
  protected bytesOf({ content, size }: FileSnapshot, source: string): Buffer {
    if (content) return content;
    const limit =
      size > this.#maxBytes
        ? `maxBytes is ${this.#maxBytes}`
        : 'a limit for all files together was reached (maxTotalBytes, maxFiles)';
    throw configError('ERR_CONFIG_TOO_LARGE', source, `it has ${size} bytes, ${limit}`);
  }

  /** The watcher, unless the signal has closed it. */
  get #running(): ResilientWatcher | undefined {
    return this.#watcher?.state === 'closed' ? undefined : this.#watcher;
  }
}
