import { absolutePath } from '../absolute-path.js';
import { ClosedError, ConfigError, ResilientError } from '../errors.js';
import { describe } from '../options.js';
import { nodeFileSystem, systemClock, systemRandom } from '../ports.js';
import { readTarget } from '../read-target.js';
import { ResilientWatcher } from '../resilient-watcher.js';
import type { Change } from '../resilient-watcher/change.js';
import { resolveWatcherOptions, type ResilientWatcherOptions } from '../resilient-watcher/watcher-options.js';
import { MissingSnapshot, type Snapshot } from '../snapshot.js';
import { runAsync } from '../steps.js';
import { PathTarget } from '../targets/path-target.js';
import type { ProviderCallback } from './config-provider.js';
import { configError } from './parser.js';

/** How often a path that keeps moving is looked at while it is watched. Each look follows it several times. */
const MAX_LOOKS = 5;

/**
 * What a provider reads and watches; the watch may be ended and begun again.
 *
 * | state    | `watch()`                       | a change, an error       | `unwatch()` |
 * |----------|---------------------------------|--------------------------|-------------|
 * | resting  | → watching                      | –                        | –           |
 * | watching | rejects `already being watched` | the callback is told     | → resting   |
 *
 * What changed between the last read and the beginning of the watch is told too.
 */
export class WatchedTarget {
  /** Absolute. */
  readonly path: string;
  readonly #target: PathTarget;
  readonly #options: ResilientWatcherOptions;
  #watcher: ResilientWatcher | undefined;
  #digest: string | undefined;

  /** @throws {TypeError | RangeError} for a wrong option. */
  constructor(path: string, options: ResilientWatcherOptions) {
    this.path = absolutePath(path);
    this.#options = options;
    this.#target = new PathTarget(this.path, resolveWatcherOptions(options));
  }

  /** Of what was last read or told; undefined before. */
  get digest(): string | undefined {
    return this.#digest;
  }

  /** The watcher, once it runs; undefined while nothing is watched. */
  get watcher(): ResilientWatcher | undefined {
    const state = this.#watcher?.state;
    return state === 'idle' || state === 'starting' || state === 'closed' ? undefined : this.#watcher;
  }

  /**
   * What is there: as last reported while it is watched, whole and settled; else as the disk has it now.
   * @throws {ConfigError} `ERR_CONFIG_UNREADABLE`.
   */
  async read(): Promise<Snapshot> {
    try {
      const snapshot = await (this.watcher ? this.#reported(this.watcher) : this.#onDisk());
      this.#digest = snapshot.digest;
      return snapshot;
    } catch (error) {
      if (!(error instanceof ResilientError) || error instanceof ConfigError) throw error;
      throw configError('ERR_CONFIG_UNREADABLE', this.path, error.message);
    }
  }

  /** See `FileProvider.watch`. */
  async watch(callback: ProviderCallback<Change>): Promise<void> {
    if (typeof callback !== 'function') {
      throw new TypeError(`watch: the callback must be a function, got ${describe(callback)}`);
    }
    if (this.#watcher && this.#watcher.state !== 'closed') {
      throw new ConfigError('ERR_CONFIG_WATCHED', `${this.path} is already being watched`);
    }
    const watcher = new ResilientWatcher(this.path, this.#options);
    this.#watcher = watcher;
    let begun = false;
    watcher.on('change', (change) => {
      const { digest } = change.current;
      const isNews = begun || (this.#digest !== undefined && this.#digest !== digest);
      this.#digest = digest;
      if (isNews) return callback(change, undefined);
    });
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
    if (this.#watcher !== watcher) throw new ClosedError(`${this.path}: watching was ended while it began`);
  }

  /** See `FileProvider.unwatch`. */
  async unwatch(): Promise<void> {
    const watcher = this.#watcher;
    this.#watcher = undefined;
    await watcher?.close();
  }

  async #reported(watcher: ResilientWatcher): Promise<Snapshot> {
    const { current } = watcher;
    const { target, changes } = watcher.status();
    // While it is unreadable the disk says why. Before the first report a file may be there that is being written.
    const hasToLook = target === 'unreadable' || (target === 'missing' && changes === 0);
    const found = hasToLook ? await this.#lookOnce() : current;
    return current.kind === 'missing' ? found : current;
  }

  #onDisk(): Promise<Snapshot> {
    const { fs = nodeFileSystem, clock = systemClock, random = systemRandom } = this.#options;
    return readTarget(this.#target, { fs, clock, random });
  }

  /** Without the patience of `#onDisk()`: what comes later the watcher reports. */
  async #lookOnce(): Promise<Snapshot> {
    const { fs = nodeFileSystem } = this.#options;
    for (let look = 0; look < MAX_LOOKS; look += 1) {
      const seen = await runAsync(this.#target.look(), fs);
      if (seen.kind === 'found') return seen.snapshot;
      if (seen.kind === 'trouble') throw seen.error;
      if (seen.kind === 'missing') break;
    }
    return new MissingSnapshot(this.path);
  }
}
