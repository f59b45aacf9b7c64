import { checkPath, flag, matching, number, resolveOptions } from '../options.js';
import type { ResilientWatcherOptions } from '../resilient-watcher/watcher-options.js';
import type { Change } from '../resilient-watcher/change.js';
import type { WatcherStatus } from '../resilient-watcher/watcher-status.js';
import type { ConfigProvider, ProviderCallback } from './config-provider.js';
import { configError, isParser, parseBytes, type ConfigParser } from './parser.js';
import { WatchedTarget } from './watched-target.js';

/** Options of `FileProvider`: its own, and those of `ResilientWatcher`. All may be left out. */
export interface FileProviderOptions extends Omit<ResilientWatcherOptions, 'maxContentBytes'> {
  /** What `read()` reads the bytes with. Default: none. */
  readonly parser?: ConfigParser | undefined;
  /** Whether it is fine that there is no file: then it has no values. Default false: reading it fails. */
  readonly optional?: boolean | undefined;
  /** A longer file is refused, bytes. Default 1 MiB, the most that a ConfigMap or Secret can hold. */
  readonly maxBytes?: number | undefined;
}

const OWN_OPTIONS = {
  parser: matching<ConfigParser | undefined>(undefined, 'an object with name and parse', isParser),
  optional: flag(false),
  maxBytes: number(1_048_576, { max: 2 ** 31 - 1, unit: 'bytes' }),
};

/**
 * A file as a source of configuration, in the shape of koanf's file provider: a key of a ConfigMap or Secret, a
 * link, a plain file, or one that is not there yet.
 *
 * ```ts
 * const provider = new FileProvider('/etc/app/app.yaml', { parser: yamlParser });
 * let config = await provider.read();
 * await provider.watch(async (event, error) => {
 *   if (error) console.warn(error.message); // watching goes on
 *   else config = await provider.read();
 * });
 * ```
 */
export class FileProvider implements ConfigProvider {
  /** The path, absolute. */
  readonly name: string;
  readonly #options: ReturnType<typeof resolveOptions<typeof OWN_OPTIONS>>;
  readonly #target: WatchedTarget;

  /**
   * Touches no file.
   * @param path a relative one is taken from the working directory now.
   * @throws {TypeError | RangeError} for a wrong path or option.
   */
  constructor(path: string, options: FileProviderOptions = {}) {
    const { parser, optional, maxBytes, ...watcherOptions } = options;
    this.#options = resolveOptions('FileProvider', { parser, optional, maxBytes }, OWN_OPTIONS);
    this.#target = new WatchedTarget(checkPath('FileProvider', 'path', path), {
      ...watcherOptions,
      maxContentBytes: this.#options.maxBytes,
    });
    this.name = this.#target.path;
  }

  /** `sha256:…` of the bytes last read, `missing` when there was no file; undefined before. */
  get digest(): string | undefined {
    return this.#target.digest;
  }

  /**
   * The file's bytes; undefined when it is missing and optional. While it is watched: as last reported, whole and
   * settled, so that what is read after a callback is never half a write.
   * @throws {ConfigError} (rejects) `ERR_CONFIG_MISSING`, `ERR_CONFIG_UNREADABLE`, `ERR_CONFIG_TOO_LARGE`.
   */
  async readBytes(): Promise<Buffer | undefined> {
    const snapshot = await this.#target.read();
    if (snapshot.kind === 'missing') {
      if (this.#options.optional) return undefined;
      throw configError('ERR_CONFIG_MISSING', this.name, 'there is no such file');
    }
    if (snapshot.kind !== 'file') {
      throw configError(
        'ERR_CONFIG_UNREADABLE',
        this.name,
        'it is a directory; a VolumeProvider reads those',
      );
    }
    if (snapshot.content) return Buffer.from(snapshot.content);
    const message = `it has ${snapshot.size} bytes, the limit is ${this.#options.maxBytes}`;
    throw configError('ERR_CONFIG_TOO_LARGE', this.name, message);
  }

  /**
   * The values in the file as the option `parser` reads them; its bytes when there is no parser. Undefined when it
   * is missing and optional.
   * @throws {ConfigError} (rejects) what `readBytes()` throws, `ERR_CONFIG_PARSE`, `ERR_CONFIG_REFUSED`,
   * `ERR_CONFIG_PACKAGE`.
   */
  async read(): Promise<unknown> {
    const bytes = await this.readBytes();
    const { parser } = this.#options;
    return bytes && parser ? parseBytes(bytes, parser, this.name) : bytes;
  }

  /**
   * Calls back after each change of the file's bytes, its coming and going included, and with each error. When it
   * resolves no change can be missed; one since the last read is told at once. It never ends by itself: an error is
   * information. What the callback throws is told as a `ListenerError`.
   * @throws {TypeError} (rejects) when the callback is no function.
   * @throws {ConfigError} (rejects) `ERR_CONFIG_WATCHED`: it is already being watched.
   * @throws {ClosedError} (rejects) when `unwatch()` is called meanwhile; the signal's reason when that has aborted.
   */
  watch(callback: ProviderCallback<Change>): Promise<void> {
    return this.#target.watch(callback);
  }

  /**
   * Ends watching; no call comes after this one, also when it is made inside the callback. It may be watched again.
   * Never rejects.
   */
  unwatch(): Promise<void> {
    return this.#target.unwatch();
  }

  /** How the watcher is; undefined while nothing is watched. */
  status(): WatcherStatus | undefined {
    return this.#target.watcher?.status();
  }
}
