import { extname } from 'node:path';

import { matching, resolveOptions } from '../core/options.js';
import type { FileState } from '../fs/snapshot.js';
import { configMapOf, isMap, type ConfigMap } from './config-value.js';
import { configError, isParser, parseBytes, textOf, type ConfigParser } from './parser.js';
import { putValue } from './put-value.js';
import { WatchedProvider, type WatchedProviderOptions } from './watched-provider.js';

/** Options of `VolumeProvider`, and those of `ResilientWatcher`. All may be left out. */
export interface VolumeProviderOptions extends WatchedProviderOptions {
  /**
   * Parsers by extension: `{ '.yaml': yamlParser }`. Such a key is parsed and stands without its extension:
   * `limits.yaml` gives `limits: {…}`. Every other key gives its text. Default: none.
   */
  readonly parsers?: Readonly<Record<string, ConfigParser>> | undefined;
  /** Where a key is split into the keys of nested maps, as `/` or `.`. Default: keys are not split. */
  readonly delimiter?: string | undefined;
}

const OWN_OPTIONS = {
  parsers: matching<Readonly<Record<string, ConfigParser>>>(
    {},
    'an object of parsers by extension, as { ".yaml": yamlParser }',
    (value) => isMap(value) && Object.values(value).every(isParser),
  ),
  delimiter: matching<string | undefined>(
    undefined,
    'a non-empty string',
    (value) => typeof value === 'string' && value !== '',
  ),
};

/**
 * A mounted ConfigMap or Secret as a source of configuration: its keys, all of one revision. Also any directory in
 * that layout (`AtomicVolume`), and a plain one, of which each file is whole.
 *
 * ```ts
 * const provider = new VolumeProvider('/etc/db'); // keys host, password
 * const { host, password } = await provider.read();
 * ```
 */
export class VolumeProvider extends WatchedProvider {
  readonly #options: ReturnType<typeof resolveOptions<typeof OWN_OPTIONS>>;

  /**
   * Touches no file.
   * @param directory a relative one is taken from the working directory now.
   * @throws {TypeError | RangeError} for a wrong path or option.
   */
  constructor(directory: string, options: VolumeProviderOptions = {}) {
    const { parsers, delimiter, ...others } = options;
    super({ name: 'VolumeProvider', argument: 'directory' }, directory, others);
    this.#options = resolveOptions('VolumeProvider', { parsers, delimiter }, OWN_OPTIONS);
  }

  /**
   * The contents by key, all of one revision; undefined when there is no directory and that is fine.
   * @throws {ConfigError} (rejects) `ERR_CONFIG_MISSING`, `ERR_CONFIG_UNREADABLE`, `ERR_CONFIG_TOO_LARGE`.
   */
  async readFiles(): Promise<ReadonlyMap<string, Buffer> | undefined> {
    const snapshot = await this.snapshot('directory');
    if (!snapshot) return undefined;
    if (snapshot.kind === 'file') {
      throw configError('ERR_CONFIG_UNREADABLE', this.name, 'it is a file; a FileProvider reads those');
    }
    return new Map([...snapshot.files].map(([key, file]) => [key, this.#bytesOf(key, file)]));
  }

  /**
   * The text of each key, or what its parser makes of it; see the options `parsers` and `delimiter`. Undefined when
   * there is no directory and that is fine.
   * @throws {ConfigError} (rejects) what `readFiles()` throws, `ERR_CONFIG_PARSE`, `ERR_CONFIG_REFUSED`,
   * `ERR_CONFIG_PACKAGE`.
   */
  async read(): Promise<ConfigMap | undefined> {
    const files = await this.readFiles();
    if (!files) return undefined;
    const { parsers, delimiter } = this.#options;
    const values: Record<string, unknown> = {};
    for (const [key, bytes] of files) {
      const source = `${this.name}/${key}`;
      const extension = extname(key);
      const parser = Object.hasOwn(parsers, extension) ? parsers[extension] : undefined;
      const name = parser ? key.slice(0, -extension.length) : key;
      const path = delimiter === undefined ? [name] : name.split(delimiter);
      const value = parser ? await parseBytes(bytes, parser, source) : textOf(bytes, source);
      if (!putValue(values, path, value)) {
        throw configError('ERR_CONFIG_REFUSED', source, 'another key has a value at the same place', {
          path,
        });
      }
    }
    return configMapOf(values);
  }

  #bytesOf(key: string, { content, size }: FileState): Buffer {
    if (content) return Buffer.from(content);
    const message = `it has ${size} bytes; the limits are ${this.maxBytes} and what maxTotalBytes says of all`;
    throw configError('ERR_CONFIG_TOO_LARGE', `${this.name}/${key}`, message);
  }
}
