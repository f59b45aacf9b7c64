import { basename, extname } from 'node:path';

import { checkPath, divideOptions, matching } from '../core/options/options.js';
import type { ConfigMap } from './config-value.js';
import { dotenvParser } from './dotenv-parser.js';
import { jsoncParser, jsonParser } from './json-parser.js';
import { isParser, parseBytes, type ConfigParser } from './parser.js';
import type { ConfigWarning } from './places.js';
import { configError } from './problems.js';
import { tomlParser } from './toml-parser.js';
import {
  PROVIDER_OPTIONS,
  PROVIDER_WATCHER_OPTION_NAMES,
  WatchedProvider,
  type WatchedProviderOptions,
} from './watched-provider.js';
import { yamlParser } from './yaml-parser.js';

/** Options of `FileProvider`, including those of `ResilientWatcher`. All are optional. */
export interface FileProviderOptions extends WatchedProviderOptions {
  /** Default: by the extension of the path: `.json`, `.jsonc`, `.yaml`, `.yml`, `.toml` or `.env`. */
  readonly parser?: ConfigParser | undefined;
}

/** By the extension of the file. */
export const PARSERS: Readonly<Record<string, ConfigParser>> = {
  '.json': jsonParser,
  '.jsonc': jsoncParser,
  '.yaml': yamlParser,
  '.yml': yamlParser,
  '.toml': tomlParser,
  '.env': dotenvParser,
};

const OPTIONS = {
  parser: matching<ConfigParser | undefined>(undefined, 'an object with name and parse', isParser),
  ...PROVIDER_OPTIONS,
};

/**
 * Provides the values in a file: a key of a ConfigMap or Secret, the target of a link, a plain file, or a file that
 * does not exist yet. Modeled on the file provider of koanf.
 *
 * ```ts
 * const provider = new FileProvider('/etc/app/app.yaml');
 * let config = await provider.read();
 * await provider.watch(async (event, error) => {
 *   if (error) console.warn(error.message); // watching continues
 *   else config = await provider.read();
 * });
 * ```
 */
export class FileProvider extends WatchedProvider {
  readonly #parser: ConfigParser | undefined;

  /**
   * Does no I/O.
   * @param path a relative path is resolved against the working directory now.
   * @throws {TypeError | RangeError} for an invalid path or option.
   */
  constructor(path: string | URL, options?: FileProviderOptions) {
    const { own, rest } = divideOptions('FileProvider', options, OPTIONS, PROVIDER_WATCHER_OPTION_NAMES);
    super(checkPath('FileProvider', 'path', path), own, rest);
    this.#parser = own.parser ?? parserByExtension(this.name);
  }

  /**
   * Resolves to the bytes of the file; to undefined if it is missing and optional. While the file is watched, these are
   * the bytes last reported, so that reading after a callback never returns a partial write.
   * @throws {ConfigError} (rejects) `ERR_CONFIG_MISSING`, `ERR_CONFIG_UNREADABLE`, `ERR_CONFIG_TOO_LARGE`.
   */
  async readBytes(): Promise<Buffer | undefined> {
    const snapshot = await this.snapshot('file');
    if (!snapshot) return undefined;
    if (snapshot.kind === 'file') return this.bytesOf(snapshot, this.name);
    throw configError('ERR_CONFIG_UNREADABLE', this.name, 'it is a directory: use a VolumeProvider');
  }

  /**
   * Resolves to the values in the file; to undefined if it is missing and optional.
   * @throws {ConfigError} (rejects) the errors of `readBytes()`, `ERR_CONFIG_PARSE` (also when no parser is known for
   * the extension).
   * @throws {PackageError} (rejects) when the parser needs a package that is not installed.
   */
  async read(): Promise<ConfigMap | undefined> {
    const parser = this.#parser;
    if (!parser) {
      const advice = `pass the option "parser"; only ${Object.keys(PARSERS).join(', ')} are recognized by extension`;
      throw configError('ERR_CONFIG_PARSE', this.name, advice);
    }
    const bytes = await this.readBytes();
    const warnings: ConfigWarning[] = [];
    const values = bytes && (await parseBytes(bytes, parser, this.name, { merge: this.merge, warnings }));
    this.warnings = warnings;
    return values && this.expanded(values, this.name);
  }
}

/** Files such as `.env` and `.env.local` are dotenv files as well. */
function parserByExtension(path: string): ConfigParser | undefined {
  const name = basename(path).toLowerCase();
  const extension = name === '.env' || name.startsWith('.env.') ? '.env' : extname(name);
  return Object.hasOwn(PARSERS, extension) ? PARSERS[extension] : undefined;
}
