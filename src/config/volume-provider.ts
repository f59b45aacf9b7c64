import { extname } from 'node:path';

import { isUtf8 } from '../core/ports/builtins.js';
import { checkPath, divideOptions, flag, nonEmptyString } from '../core/options/options.js';
import { Globs, patterns, type IgnorePattern } from '../fs/globs.js';
import { utf16In } from '../fs/read-file.js';
import type { ConfigMap } from './config-value.js';
import { nestedValues, type NamedEntry } from './nested-values.js';
import { parseBytes, parsersByExtension, textOf, type ConfigParser } from './parser.js';
import { withPlaces, type ConfigWarning } from './places.js';
import {
  FILES_OPTIONS,
  PROVIDER_WATCHER_OPTION_NAMES,
  WatchedProvider,
  type FilesOptions,
} from './watched-provider.js';

/** Options of `VolumeProvider`, including those of `ResilientWatcher`. All are optional. */
export interface VolumeProviderOptions extends FilesOptions {
  /**
   * Parsers by extension, with or without the dot: `{ yaml: yamlParser }`. A key with such an extension is parsed and
   * loses the extension: `limits.yaml` sets `limits`. All other keys are text. Default: none.
   */
  readonly parsers?: Readonly<Record<string, ConfigParser>> | undefined;
  /**
   * Splits a key into the keys of nested maps: with `.`, `log.level` sets `level` in `log`. Default: keys are not
   * split.
   */
  readonly delimiter?: string | undefined;
  /**
   * Whether white space at both ends of text is removed: many Secrets end with a line feed that is not part of the
   * password. Default false.
   */
  readonly trim?: boolean | undefined;
  /** The keys that are provided in base64, as in `binaryData` of a ConfigMap: `['*.jks']`. Default: none. */
  readonly base64?: readonly IgnorePattern[] | undefined;
}

const OPTIONS = {
  ...FILES_OPTIONS,
  base64: patterns(undefined, '*.jks'),
  delimiter: nonEmptyString(undefined),
  trim: flag(false),
};

/**
 * Provides the keys of a mounted ConfigMap or Secret, all from one revision. Also reads other directories with that
 * layout (`AtomicVolume`), and plain directories, where only each single file is consistent. A key that is not text, such
 * as a keystore, is left out with a warning, unless `ignore` or `base64` names it; one with a parser must be text.
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
  readonly #base64: Globs;

  /**
   * Does no I/O.
   * @param directory a relative path is resolved against the working directory now.
   * @throws {TypeError | RangeError} for an invalid path or option.
   */
  constructor(directory: string | URL, options?: VolumeProviderOptions) {
    const { own, rest } = divideOptions('VolumeProvider', options, OPTIONS, PROVIDER_WATCHER_OPTION_NAMES);
    super(checkPath('VolumeProvider', 'directory', directory), own, rest);
    this.#parsers = parsersByExtension(own.parsers);
    this.#delimiter = own.delimiter ?? '';
    this.#trim = own.trim;
    this.#base64 = new Globs(own.base64 ?? [], 'base64');
  }

  /**
   * Resolves to the contents by key, all from one revision; to undefined if the directory is missing and optional.
   * @throws {ConfigError} (rejects) `ERR_CONFIG_MISSING`, `ERR_CONFIG_UNREADABLE`, `ERR_CONFIG_TOO_LARGE`.
   */
  async readFiles(): Promise<ReadonlyMap<string, Buffer> | undefined> {
    const files = await this.filesIn();
    return files && new Map(files.map(([key, file]) => [key, this.bytesOf(file, `${this.name}/${key}`)]));
  }

  /**
   * Resolves to the text or the parsed values of each key; to undefined if the directory is missing and optional.
   * @throws {ConfigError} (rejects) the errors of `readFiles()`, `ERR_CONFIG_PARSE`.
   * @throws {PackageError} (rejects) when a parser needs a package that is not installed.
   */
  async read(): Promise<ConfigMap | undefined> {
    const files = await this.readFiles();
    const warnings: ConfigWarning[] = [];
    const values = files && (await this.#valuesIn(files, warnings));
    this.warnings = warnings;
    return values && this.expanded(values, this.name);
  }

  async #valuesIn(files: ReadonlyMap<string, Buffer>, warnings: ConfigWarning[]): Promise<ConfigMap> {
    const entries: NamedEntry[] = [];
    for (const [name, bytes] of files) {
      const source = `${this.name}/${name}`;
      const extension = extname(name);
      const parser = this.#parsers.get(extension.toLowerCase());
      if (this.#base64.matches(name)) {
        entries.push({ name, key: name, value: bytes.toString('base64') });
      } else if (parser) {
        const value = await parseBytes(bytes, parser, source, { merge: this.merge, warnings });
        entries.push({ name, key: name.slice(0, -extension.length), value });
      } else if (isUtf8(bytes) && utf16In(bytes) === undefined) {
        entries.push({ name, key: name, value: this.#textOf(bytes, source) });
      } else warnings.push({ code: 'binary', message: `${source}: ${NOT_TEXT}` });
    }
    const { values, placeOf } = nestedValues(entries, this.#delimiter, this.name);
    return withPlaces(values, async (path) => {
      const { name, ...place } = (await placeOf(path)) ?? {};
      return name === undefined ? undefined : { ...place, file: `${this.name}/${name}` };
    });
  }

  #textOf(bytes: Buffer, source: string): string {
    const text = textOf(bytes, source);
    return this.#trim ? text.trim() : text;
  }
}

const NOT_TEXT =
  'the key is not text, and left out; the option "base64" of the VolumeProvider provides it, "ignore" ends this warning';
