import { matching, resolveOptions } from '../core/options.js';
import { configError, isParser, parseBytes, type ConfigParser } from './parser.js';
import { WatchedProvider, type WatchedProviderOptions } from './watched-provider.js';

/** Options of `FileProvider`, and those of `ResilientWatcher`. All may be left out. */
export interface FileProviderOptions extends WatchedProviderOptions {
  /** What `read()` reads the bytes with. Default: none. */
  readonly parser?: ConfigParser | undefined;
}

const OWN_OPTIONS = {
  parser: matching<ConfigParser | undefined>(undefined, 'an object with name and parse', isParser),
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
export class FileProvider extends WatchedProvider {
  readonly #parser: ConfigParser | undefined;

  /**
   * Touches no file.
   * @param path a relative one is taken from the working directory now.
   * @throws {TypeError | RangeError} for a wrong path or option.
   */
  constructor(path: string, options: FileProviderOptions = {}) {
    const { parser, ...others } = options;
    super({ name: 'FileProvider', argument: 'path' }, path, others);
    this.#parser = resolveOptions('FileProvider', { parser }, OWN_OPTIONS).parser;
  }

  /**
   * The file's bytes; undefined when it is missing and optional. While it is watched: as last reported, whole and
   * settled, so that what is read after a callback is never half a write.
   * @throws {ConfigError} (rejects) `ERR_CONFIG_MISSING`, `ERR_CONFIG_UNREADABLE`, `ERR_CONFIG_TOO_LARGE`.
   */
  async readBytes(): Promise<Buffer | undefined> {
    const snapshot = await this.snapshot('file');
    if (!snapshot) return undefined;
    if (snapshot.kind !== 'file') {
      throw configError(
        'ERR_CONFIG_UNREADABLE',
        this.name,
        'it is a directory; a VolumeProvider reads those',
      );
    }
    if (snapshot.content) return Buffer.from(snapshot.content);
    const message = `it has ${snapshot.size} bytes, the limit is ${this.maxBytes}`;
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
    return bytes && this.#parser ? parseBytes(bytes, this.#parser, this.name) : bytes;
  }
}
