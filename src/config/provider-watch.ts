import { ClosedError, ConfigError } from '../errors.js';
import { describe } from '../options.js';
import { ResilientWatcher } from '../resilient-watcher.js';
import type { Change } from '../resilient-watcher/reporter.js';
import type { ResilientWatcherOptions } from '../resilient-watcher/watcher-options.js';
import type { ProviderCallback } from './config-provider.js';

/**
 * The watch of a provider, which may be ended and begun again.
 *
 * | state    | `begin()`                      | a change, an error       | `end()`    |
 * |----------|--------------------------------|--------------------------|------------|
 * | resting  | → watching                     | –                        | –          |
 * | watching | rejects `already being watched`| the callback is told     | → resting  |
 *
 * What changed between the last read and the beginning of the watch is told too.
 */
export class ProviderWatch {
  readonly #path: string;
  readonly #options: ResilientWatcherOptions;
  #watcher: ResilientWatcher | undefined;
  #known: string | undefined;

  /** @throws {TypeError | RangeError} for a wrong path or option. */
  constructor(path: string, options: ResilientWatcherOptions) {
    this.#path = path;
    this.#options = options;
    // Nothing is opened by making one; it says what is wrong with the options before anything is watched.
    void new ResilientWatcher(path, options);
  }

  /** The watcher, once it has looked; undefined while nothing is watched. */
  get watcher(): ResilientWatcher | undefined {
    const state = this.#watcher?.state;
    return state === 'idle' || state === 'starting' || state === 'closed' ? undefined : this.#watcher;
  }

  /** Takes in that the user has seen this state. */
  seen(digest: string): void {
    this.#known = digest;
  }

  /**
   * Resolves when every change from now on will be told.
   * @throws {ConfigError} (rejects) `ERR_CONFIG_WATCHED` while it is being watched.
   * @throws {TypeError} (rejects) when the callback is no function.
   * @throws {ClosedError} (rejects) when it is ended meanwhile; the signal's reason when that has aborted.
   */
  async begin(callback: ProviderCallback<Change>): Promise<void> {
    if (typeof callback !== 'function') {
      throw new TypeError(`watch: the callback must be a function, got ${describe(callback)}`);
    }
    if (this.#watcher) throw new ConfigError('ERR_CONFIG_WATCHED', `${this.#path} is already being watched`);
    const watcher = new ResilientWatcher(this.#path, this.#options);
    this.#watcher = watcher;
    let begun = false;
    watcher.on('change', (change) => {
      const { digest } = change.current;
      const isNews = begun || (this.#known !== undefined && this.#known !== digest);
      this.#known = digest;
      if (isNews) callback(change, undefined);
    });
    watcher.on('error', (error) => callback(undefined, error));
    watcher.on('warning', ({ message }) =>
      callback(undefined, new ConfigError('ERR_CONFIG_FROZEN', message)),
    );
    try {
      await watcher.start();
      begun = true;
    } catch (error) {
      if (this.#watcher === watcher) await this.end();
      throw error;
    }
    if (this.#watcher !== watcher) throw new ClosedError(`${this.#path}: watching was ended while it began`);
  }

  /** Ends it; no call comes any more. Never rejects. */
  async end(): Promise<void> {
    const watcher = this.#watcher;
    this.#watcher = undefined;
    await watcher?.close();
  }
}
