import { extname } from 'node:path';

import { checkPath, divideOptions } from '../core/options/options.js';
import { Globs } from '../fs/globs.js';
import type { FileSnapshot } from '../fs/snapshot.js';
import type { ConfigProvider } from './config-provider.js';
import type { ConfigMap } from './config-value.js';
import { PARSERS } from './file-provider.js';
import { mergedMap } from './merge.js';
import { parseBytes, parsersByExtension, type ConfigParser } from './parser.js';
import type { ConfigWarning } from './places.js';
import { configError } from './problems.js';
import {
  FILES_OPTIONS,
  PROVIDER_WATCHER_OPTION_NAMES,
  WatchedProvider,
  type FilesOptions,
} from './watched-provider.js';

/** Options of `DirectoryProvider`, including those of `ResilientWatcher`. All are optional. */
export interface DirectoryProviderOptions extends FilesOptions {
  /** More parsers by extension, with or without the dot: `{ conf: dotenvParser }`. Those of `FileProvider` are known. */
  readonly parsers?: Readonly<Record<string, ConfigParser>> | undefined;
}

/** More than people write, and few enough to try one by one. */
const MAX_FILES = 1_000;

/** What is there in such directories and is meant not to be used, besides what editors leave. */
const SET_ASIDE = new Globs([
  ...Globs.LEFTOVERS,
  '.*',
  'README*',
  'sed??????',
  '*___jb_*___',
  '*.{bak,old,orig,rej,save,swp,tmp,disabled,off,sample,example,rpmnew,rpmorig,rpmsave}',
  '*.{dpkg,ucf}-*',
]);

/**
 * Provides the values in the files of a directory, merged in the order of their names, as `conf.d` directories are: a
 * mounted ConfigMap, all of whose files come from one revision, or a plain directory. In the names, numbers are
 * compared by value and everything else by code: `9-b.yaml` comes before `10-a.yaml`, and what a later file sets takes
 * precedence. Subdirectories, hidden files and what editors leave behind are left out.
 *
 * In a `ConfigLoader`, each file is a source of its own, with the path as its name: one that is bad keeps its last good
 * values, and the others go on.
 *
 * ```ts
 * const loader = new ConfigLoader({ sources: [{ provider: new DirectoryProvider('/etc/app/conf.d') }] });
 * ```
 */
export class DirectoryProvider extends WatchedProvider {
  readonly #parsers: ReadonlyMap<string, ConfigParser>;

  /**
   * Does no I/O.
   * @param directory a relative path is resolved against the working directory now.
   * @throws {TypeError | RangeError} for an invalid path or option.
   */
  constructor(directory: string | URL, options?: DirectoryProviderOptions) {
    const { own, rest } = divideOptions(
      'DirectoryProvider',
      options,
      FILES_OPTIONS,
      PROVIDER_WATCHER_OPTION_NAMES,
    );
    super(checkPath('DirectoryProvider', 'directory', directory), own, rest);
    this.#parsers = parsersByExtension({ ...PARSERS, ...own.parsers });
  }

  /**
   * Resolves to a provider for each file, the lowest layer first; to none if the directory is missing and optional.
   * @throws {ConfigError} (rejects) `ERR_CONFIG_MISSING`, `ERR_CONFIG_UNREADABLE`; `ERR_CONFIG_TOO_LARGE` for more than
   * 1,000 files.
   */
  async parts(): Promise<readonly ConfigProvider[]> {
    const files = (await this.filesIn()) ?? [];
    const warnings: ConfigWarning[] = [];
    const parts: ConfigProvider[] = [];
    for (const [name, file] of [...files].sort(([a], [b]) => byNumber(a, b))) {
      if (SET_ASIDE.matches(name)) continue;
      const path = `${this.name}/${name}`;
      const parser = this.#parsers.get(extname(name).toLowerCase());
      if (parser) parts.push(this.#part(path, file, parser));
      else warnings.push({ code: 'ignored', message: `${path}: ${NO_PARSER}` });
    }
    this.warnings = warnings;
    if (parts.length <= MAX_FILES) return parts;
    const message = `it has ${parts.length} files, and at most ${MAX_FILES} are merged; "include" selects some`;
    throw configError('ERR_CONFIG_TOO_LARGE', this.name, message);
  }

  /**
   * Resolves to the merged values of all files; to undefined if the directory is missing and optional.
   * @throws {ConfigError} (rejects) the errors of `parts()`, and of the first file that cannot be used: `ERR_CONFIG_PARSE`,
   * `ERR_CONFIG_TOO_LARGE`.
   * @throws {PackageError} (rejects) when a parser needs a package that is not installed.
   */
  async read(): Promise<ConfigMap | undefined> {
    const parts = await this.parts();
    if (this.digest === 'missing') return undefined;
    let values: ConfigMap = {};
    for (const part of parts) values = mergedMap(values, (await part.read()) as ConfigMap);
    return values;
  }

  #part(name: string, file: FileSnapshot, parser: ConfigParser): ConfigProvider {
    const warnings: ConfigWarning[] = [];
    return {
      name,
      digest: file.digest,
      warnings,
      read: async () => {
        warnings.length = 0;
        const bytes = this.bytesOf(file, name);
        return this.expanded(await parseBytes(bytes, parser, name, { merge: this.merge, warnings }), name);
      },
    };
  }
}

const NO_PARSER =
  'there is no parser for this extension, so it is left out; the option "parsers" of the DirectoryProvider adds one, "ignore" ends this warning';

/** Compares names: numbers by value, everything else by code, as in a C locale. Numbers may have any length. */
function byNumber(a: string, b: string): number {
  const key = (name: string): string =>
    name.replaceAll(/\d+/g, (digits) => {
      const number = digits.replace(/^0+(?=\d)/, '');
      return `0${String(number.length).padStart(3, '0')}${number}`;
    });
  const [one, other] = [key(a), key(b)];
  return one === other ? (a < b ? -1 : 1) : one < other ? -1 : 1;
}
