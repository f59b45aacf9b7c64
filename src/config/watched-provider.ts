import { absolutePath } from '../fs/absolute-path.js';
import { ClosedError, ConfigError, ResilientError } from '../core/errors.js';
import { checkPath, describe, flag, resolveOptions } from '../core/options.js';
import { stableRead } from '../fs/stable-read.js';
import { ResilientWatcher } from '../watch/resilient-watcher.js';
import type { Change } from '../watch/change.js';
import {
  resolveWatcherOptions,
  type ResilientWatcherOptions,
  type ResolvedWatcherOptions,
} from '../watch/watcher-options.js';
import type { WatcherStatus } from '../watch/watcher-status.js';
import { MissingSnapshot, type Snapshot } from '../fs/snapshot.js';
import { runAsync } from '../fs/effects.js';
import { PathTarget } from '../fs/targets/path-target.js';
import { READ_LIMITS } from '../fs/targets/read-limits.js';
import type { ConfigProvider, ProviderCallback } from './config-provider.js';
import { configError } from './parser.js';

/** How often a path that keeps moving is looked at while it is watched. Each look follows it several times. */
const MAX_LOOKS = 5;

/** The options that every `WatchedProvider` has, and those of `ResilientWatcher`. All may be left out. */
export interface WatchedProviderOptions extends Omit<ResilientWatcherOptions, 'maxContentBytes'> {
  /** Whether it is fine that there is nothing: then it has no values. Default false: reading it fails. */
  readonly optional?: boolean | undefined;
  /** A longer file is refused, bytes. Default 1 MiB, the most that a ConfigMap or Secret can hold. */
  readonly maxBytes?: number | undefined;
}

const OWN_OPTIONS = {
  optional: flag(false),
  maxBytes: READ_LIMITS.maxContentBytes,
};

/**
 * Something on disk as a source of configuration; watching it may be ended and begun again.
 *
 * | state    | `watch()`                       | a change, an error       | `unwatch()` |
 * |----------|---------------------------------|--------------------------|-------------|
 * | resting  | → watching                      | –                        | –           |
 * | watching | rejects `already being watched` | the callback is told     | → resting   |
 *
 * What changed between the last read and the beginning of the watch is told too.
 */
export abstract class WatchedProvider implements ConfigProvider {
  /** The path, absolute. */
  readonly name: string;
  /** See `WatchedProviderOptions.maxBytes`. */
  protected readonly maxBytes: number;
  readonly #optional: boolean;
  readonly #target: PathTarget;
  readonly #watcherOptions: ResilientWatcherOptions;
  readonly #options: ResolvedWatcherOptions;
  #watcher: ResilientWatcher | undefined;
  #digest: string | undefined;

  /**
   * @param owner the class, for messages, and what it calls the path
   * @throws {TypeError | RangeError} for a wrong path or option.
   */
  protected constructor(
    owner: { readonly name: string; readonly argument: string },
    path: string,
    { optional, maxBytes, ...watcherOptions }: WatchedProviderOptions,
  ) {
    const own = resolveOptions(owner.name, { optional, maxBytes }, OWN_OPTIONS);
    this.#optional = own.optional;
    this.maxBytes = own.maxBytes;
    this.name = absolutePath(checkPath(owner.name, owner.argument, path));
    this.#watcherOptions = { ...watcherOptions, maxContentBytes: this.maxBytes };
    this.#options = resolveWatcherOptions(this.#watcherOptions, { isGroup: false });
    this.#target = new PathTarget(this.name, this.#options);
  }

  /** Of what was last read or told: `sha256:…` of a file, `set:…` of a volume, `missing`; undefined before. */
  get digest(): string | undefined {
    return this.#digest;
  }

  abstract read(): Promise<unknown>;

  /**
   * Calls back after each change of the bytes, coming and going included, and with each error; of a volume after
   * each new revision whose files differ. When it resolves no change can be missed; one since the last read is told
   * at once. It never ends by itself: an error is information. What the callback throws is told as a `ListenerError`.
   * @throws {TypeError} (rejects) when the callback is no function.
   * @throws {ConfigError} (rejects) `ERR_CONFIG_WATCHED`: it is already being watched.
   * @throws {ClosedError} (rejects) when `unwatch()` is called meanwhile; the signal's reason when that has aborted.
   */
  async watch(callback: ProviderCallback<Change>): Promise<void> {
    if (typeof callback !== 'function') {
      throw new TypeError(`watch: the callback must be a function, got ${describe(callback)}`);
    }
    if (this.#watcher && this.#watcher.state !== 'closed') {
      throw new ConfigError('ERR_CONFIG_WATCHED', `${this.name} is already being watched`);
    }
    const watcher = new ResilientWatcher(this.name, this.#watcherOptions);
    this.#watcher = watcher;
    let begun = false;
    watcher.on('change', (change) => {
      const { digest } = change.current;
      const isNews = begun || (this.#digest !== undefined && this.#digest !== digest);
      this.#digest = digest;
      if (isNews) return callback(change, undefined);
    });
    watcher.on('unreadable', ({ error }) => callback(undefined, error));
    watcher.on('error', (error) => callback(undefined, error));
    watcher.on('warning', ({ message }) =>
      callback(undefined, new ConfigError('ERR_CONFIG_FROZEN', message)),
    );
    try {
      await watcher.start();
      begun = true;
    } catch (error) {
      if (this.#watcher === watcher) await this.unwatch();
      throw error;
    }
    if (this.#watcher !== watcher) throw new ClosedError(`${this.name}: watching was ended while it began`);
  }

  /**
   * Ends watching; no call comes after this one, also when it is made inside the callback. It may be watched again.
   * Never rejects.
   */
  async unwatch(): Promise<void> {
    const watcher = this.#watcher;
    this.#watcher = undefined;
    await watcher?.close();
  }

  /** How the watcher is; undefined while nothing is watched. */
  status(): WatcherStatus | undefined {
    return this.#running?.status();
  }

  /**
   * What is there: as last reported while it is watched, whole and settled; else as the disk has it now. Undefined
   * when there is nothing and that is fine.
   * @param wanted what should be there, for messages
   * @throws {ConfigError} `ERR_CONFIG_MISSING`, `ERR_CONFIG_UNREADABLE`.
   */
  protected async snapshot(wanted: string): Promise<Exclude<Snapshot, MissingSnapshot> | undefined> {
    const snapshot = await this.#observe();
    if (snapshot.kind !== 'missing') return snapshot;
    if (this.#optional) return undefined;
    throw configError('ERR_CONFIG_MISSING', this.name, `there is no such ${wanted}`);
  }

  /** The watcher, once it runs. */
  get #running(): ResilientWatcher | undefined {
    const state = this.#watcher?.state;
    return state === 'idle' || state === 'starting' || state === 'closed' ? undefined : this.#watcher;
  }

  async #observe(): Promise<Snapshot> {
    try {
      const snapshot = await (this.#running ? this.#reported(this.#running) : this.#onDisk());
      this.#digest = snapshot.digest;
      return snapshot;
    } catch (error) {
      if (!(error instanceof ResilientError) || error instanceof ConfigError) throw error;
      throw configError('ERR_CONFIG_UNREADABLE', this.name, error.message);
    }
  }

  async #reported(watcher: ResilientWatcher): Promise<Snapshot> {
    const { current } = watcher;
    // While it is unreadable the disk says why. Before the first report a file may be there that is being written.
    const found = current && watcher.status().target !== 'unreadable' ? current : await this.#lookOnce();
    return current === undefined || current.kind === 'missing' ? found : current;
  }

  #onDisk(): Promise<Snapshot> {
    return stableRead(this.#target, this.#options);
  }

  /** Without the quietPeriod of `#onDisk()`: what comes later the watcher reports. */
  async #lookOnce(): Promise<Snapshot> {
    for (let look = 0; look < MAX_LOOKS; look += 1) {
      const seen = await runAsync(this.#target.observe(), this.#options.fs);
      if (seen.kind === 'found') return seen.snapshot;
      if (seen.kind === 'unreadable') throw seen.error;
      if (seen.kind === 'missing') break;
    }
    return new MissingSnapshot(this.name);
  }
}
