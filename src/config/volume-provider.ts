import { extname } from 'node:path';

import { divideOptions, flag, matching, nonEmptyString } from '../core/options.js';
import { isMap, type ConfigMap } from './config-value.js';
import { nestedValues, type NamedEntry } from './nested-values.js';
import { isParser, parseBytes, textOf, type ConfigParser } from './parser.js';
import { configError } from './problems.js';
import {
  PROVIDER_OPTIONS,
  PROVIDER_WATCHER_OPTION_NAMES,
  WatchedProvider,
  type WatchedProviderOptions,
} from './watched-provider.js';

/** Options of `VolumeProvider`, including those of `ResilientWatcher`. All are optional. */
export interface VolumeProviderOptions extends WatchedProviderOptions {
  /**
   * Parsers by extension, with or without the dot: `{ yaml: yamlParser }`. A key with such an extension is parsed and
   * loses the extension: `limits.yaml` sets `limits`. All other keys are text. Default: none.
   */
  readonly parsers?: Readonly<Record<string, ConfigParser>> | undefined;
  /** Splits a key into the keys of nested maps: with `.`, `log.level` sets `level` in `log`. Default: keys are not split. */
  readonly delimiter?: string | undefined;
  /**
   * Whether white space at both ends of text is removed: many Secrets end with a line feed that is not part of the
   * password. Default false.
   */
  readonly trim?: boolean | undefined;
}

const OPTIONS = {
  parsers: matching<Readonly<Record<string, ConfigParser>>>(
    {},
    'an object of parsers by extension, such as { yaml: yamlParser }',
    (value) => isMap(value) && Object.values(value).every(isParser),
  ),
  delimiter: nonEmptyString(undefined),
  trim: flag(false),
  ...PROVIDER_OPTIONS,
};

/**
 * Provides the keys of a mounted ConfigMap or Secret, all from one revision. Also reads other directories with that
 * layout (`AtomicVolume`), and plain directories, where only each single file is consistent.
 *
 * ```ts
 * const provider = new VolumeProvider('/etc/db', { trim: true }); // keys host, password
 * const { host, password } = await provider.read();
 * ```
 */
export class VolumeProvider extends WatchedProvider {
  readonly #parsers: ReadonlyMap<string, ConfigParser>;
  readonly #delimiter: string;
  readonly #trim: boolean;

  /**
   * Does no I/O.
   * @param directory a relative path is resolved against the working directory now.
   * @throws {TypeError | RangeError} for an invalid path or option.
   */
  constructor(directory: string | URL, options?: VolumeProviderOptions) {
    const { own, rest } = divideOptions('VolumeProvider', options, OPTIONS, PROVIDER_WATCHER_OPTION_NAMES);
    const owner = { name: 'VolumeProvider', argument: 'directory' };
    super({ owner, path: directory, ...own, watching: rest });
    const byExtension = Object.entries(own.parsers);
    this.#parsers = new Map(byExtension.map(([extension, parser]) => [withDot(extension), parser]));
    this.#delimiter = own.delimiter ?? '';
    this.#trim = own.trim;
  }

  /**
   * Resolves to the contents by key, all from one revision; to undefined if the directory is missing and optional.
   * @throws {ConfigError} (rejects) `ERR_CONFIG_MISSING`, `ERR_CONFIG_UNREADABLE`, `ERR_CONFIG_TOO_LARGE`.
   */
  async readFiles(): Promise<ReadonlyMap<string, Buffer> | undefined> {
    const snapshot = await this.snapshot('directory');
    if (!snapshot) return undefined;
    if (snapshot.kind === 'file') {
      throw configError('ERR_CONFIG_UNREADABLE', this.name, 'it is a file: use a FileProvider');
    }
    const files = [...snapshot.files];
    return new Map(files.map(([key, file]) => [key, this.bytesOf(file, `${this.name}/${key}`)]));
  }

  /**
   * Resolves to the text or the parsed values of each key; to undefined if the directory is missing and optional.
   * @throws {ConfigError} (rejects) the errors of `readFiles()`, `ERR_CONFIG_PARSE`.
   * @throws {PackageError} (rejects) when a parser needs a package that is not installed.
   */
  async read(): Promise<ConfigMap | undefined> {
    const files = await this.readFiles();
    if (!files) return undefined;
    const entries: NamedEntry[] = [];
    for (const [name, bytes] of files) {
      const source = `${this.name}/${name}`;
      const extension = extname(name);
      const parser = this.#parsers.get(extension.toLowerCase());
      entries.push(
        parser
          ? { name, key: name.slice(0, -extension.length), value: await parseBytes(bytes, parser, source) }
          : { name, key: name, value: this.#textOf(bytes, source) },
      );
    }
    return nestedValues(entries, this.#delimiter, this.name);
  }

  #textOf(bytes: Buffer, source: string): string {
    const text = textOf(bytes, source);
    return this.#trim ? text.trim() : text;
  }
}

function withDot(extension: string): string {
  return `.${extension.replace(/^\./, '').toLowerCase()}`;
}
