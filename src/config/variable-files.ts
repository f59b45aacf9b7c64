/**
 * The files that variables name: `APP_DB_PASSWORD_FILE=/run/secrets/db` sets `APP_DB_PASSWORD` to the text of that
 * file.
 */
import { toldPath } from '../core/ports/platform-path.js';
import { withoutLineEnds } from '../fs/read-file.js';
import type { ConfigError } from './config-error.js';
import type { ConfigProvider, ProviderCallback, ProviderHealth } from './config-provider.js';
import { FileProvider } from './file-provider.js';
import { textOf } from './parser.js';
import { configError, sourceProblems } from './problems.js';
import type { Variables } from './expansion.js';
import type { ENVIRONMENT_OPTIONS } from './environment.js';
import { environmentValues } from './environment.js';
import type { Reading } from './merge.js';
import type { Resolved } from '../core/options/options.js';

type ResolvedEnvironment = Resolved<typeof ENVIRONMENT_OPTIONS>;

/** What the images of databases call such variables. */
const SUFFIX = '_FILE';

/** A file, and the variable that names it. */
interface VariableFile {
  readonly text: string;
  readonly path: string;
  readonly variable: string;
}

/** An environment of which some variables name files. Which ones these are is read with the variables. */
export class VariableFiles implements ConfigProvider {
  readonly name: string;
  readonly #options: ResolvedEnvironment;
  readonly #isWhole: boolean;
  /** By the names of the variables that name them. */
  readonly #files = new Map<string, FileProvider>();
  #watching: Parameters<FileProvider['watch']> | undefined;

  constructor(name: string, options: ResolvedEnvironment, isWhole: boolean) {
    this.name = name;
    this.#options = options;
    this.#isWhole = isWhole;
  }

  /**
   * The variables as nested maps, with the texts of the files, without the line ends at their ends.
   * @throws {ConfigError} (rejects) `ERR_CONFIG_PARSE` if a variable is set and names a file, too, and the errors of
   * reading a file and of `environmentValues`.
   */
  async read(): Promise<Reading> {
    const { env = process.env } = this.#options;
    await this.#follow(env);
    const files = new Map<string, VariableFile>();
    const variables: Record<string, string | undefined> = { ...env };
    for (const [variable, file] of this.#files) {
      const name = variable.slice(0, -SUFFIX.length);
      if (env[name]) {
        const message = `${name} and ${variable} are both set, and both set the same key: unset one of them`;
        throw configError('ERR_CONFIG_PARSE', this.name, message);
      }
      const text = await this.#textOf(variable, file);
      files.set(name, { text, path: file.name, variable });
      variables[name] = text;
      variables[variable] = undefined;
    }
    const set = environmentValues({ ...this.#options, env: variables }, this.name, this.#isWhole);
    const fileOf = (path: readonly string[]): VariableFile | undefined => files.get(set.nameOf(path) ?? '');
    return {
      ...set,
      placeOf: (path) => {
        const file = fileOf(path);
        return file ? { name: file.variable } : set.placeOf(path);
      },
      fileOf: (path) => {
        const file = fileOf(path);
        return file && `${file.path} (${file.variable})`;
      },
    };
  }

  async watch(callback: ProviderCallback, health?: ProviderHealth): Promise<void> {
    this.#watching = [callback, health];
    await this.#follow(this.#options.env ?? process.env);
  }

  async check(): Promise<void> {
    await Promise.all([...this.#files.values()].map((file) => file.check()));
  }

  async unwatch(): Promise<void> {
    this.#watching = undefined;
    const files = [...this.#files.values()];
    this.#files.clear();
    await Promise.all(files.map((file) => file.unwatch()));
  }

  async #textOf(variable: string, file: FileProvider): Promise<string> {
    try {
      return withoutLineEnds(textOf((await file.readBytes()) ?? Buffer.of(), file.name));
    } catch (error) {
      const [problem] = sourceProblems(error, file.name);
      throw configError((error as ConfigError).code, this.name, `${variable}: ${problem?.message}`);
    }
  }

  /** Makes the files those that the variables name now. */
  async #follow(env: Variables): Promise<void> {
    const named = new Map<string, string>();
    for (const [name, path] of Object.entries(env))
      if (path && this.#isFile(name)) named.set(name, toldPath(path));
    for (const [name, file] of this.#files) {
      if (named.get(name) === file.name) continue;
      this.#files.delete(name);
      await file.unwatch();
    }
    for (const [name, path] of named) {
      if (this.#files.has(name)) continue;
      const file = new FileProvider(path);
      this.#files.set(name, file);
      if (this.#watching) await file.watch(...this.#watching);
    }
  }

  #isFile(variable: string): boolean {
    const { prefix, files } = this.#options;
    const isNamed = Array.isArray(files) ? files.includes(variable) : files === true;
    return (
      isNamed &&
      variable.startsWith(prefix) &&
      variable.length > prefix.length + SUFFIX.length &&
      variable.endsWith(SUFFIX)
    );
  }
}
