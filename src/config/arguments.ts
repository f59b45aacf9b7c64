import { nodeUtil } from '../core/ports/builtins.js';
import { isPlainObject, matching, resolveOptions, type Resolved } from '../core/options/options.js';
import type { Reading } from './merge.js';
import { nestedValues } from './nested-values.js';
import { configError } from './problems.js';

/** An allowed argument, as in `parseArgs`. */
interface ArgumentOption {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  readonly multiple?: boolean;
}

/** Selects command-line arguments, and the keys that they set. */
export interface ArgumentOptions {
  /** Default: `process.argv.slice(2)`. */
  readonly args?: readonly string[] | undefined;
  /**
   * The allowed arguments by key, as in `parseArgs` of `node:util`. With the type `string`, the value may be the next
   * argument (`--port 8080`); `short` is a name of one letter; with `multiple`, the value is an array. Default: all
   * arguments are allowed, and a value follows `=`.
   */
  readonly options?: Readonly<Record<string, ArgumentOption>> | undefined;
  /** Splits a name into the keys of nested maps. Default `.`: `--log.level=debug` sets `log.level`. */
  readonly delimiter?: string | undefined;
}

const OPTIONS = {
  args: matching<ArgumentOptions['args']>(undefined, 'an array', Array.isArray),
  options: matching<ArgumentOptions['options']>(undefined, 'an object', isPlainObject),
  delimiter: matching<string>('.', 'a string', (value) => typeof value === 'string'),
};

type ResolvedArguments = Resolved<typeof OPTIONS>;

/**
 * The arguments as nested maps. `--key=value` sets a string (the last one wins), `--key` sets true and `--no-key` sets
 * false. Other arguments (`-v`, `name`), and everything after `--`, are ignored.
 * @throws {ConfigError} `ERR_CONFIG_PARSE` for an argument that `options` does not allow, one that sets a key below the
 * value of another one, and a forbidden key.
 */
export function argumentValues(options: ResolvedArguments, source: string): Reading {
  let values: Readonly<Record<string, unknown>>;
  try {
    values = parsed(options);
  } catch (error) {
    throw configError('ERR_CONFIG_PARSE', source, refusal(error as NodeJS.ErrnoException));
  }
  const entries = Object.entries(values).map(([key, value]) => ({ name: `--${key}`, key, value }));
  return nestedValues(entries, options.delimiter, source);
}

/** What Node.js says of an unknown option, around its name. */
const UNKNOWN = /^Unknown option '(--?[\w.-]+)'(?:\. [^']*'-'[^']*'--'[^']*'-- "\1"'?)?$/;

/** Why arguments are refused. Only a plain name of an unknown option is shown: anything else may be a value. */
function refusal({ code, message }: NodeJS.ErrnoException): string {
  if (code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION') return message;
  const [, name] = UNKNOWN.exec(message) ?? [];
  return name === undefined ? 'an argument is none of the options' : `unknown option ${name}`;
}

/**
 * The options with defaults filled in.
 * @throws {TypeError} for a wrong option, and for options that `parseArgs` does not accept.
 */
export function argumentOptions(owner: string, given: unknown): ResolvedArguments {
  const options = resolveOptions(owner, given, OPTIONS);
  parsed({ ...options, args: [] });
  return options;
}

function parsed({
  args = process.argv.slice(2),
  options,
}: ArgumentOptions): Readonly<Record<string, unknown>> {
  const strict = options !== undefined;
  // Without options, `parseArgs` would make a key of each letter behind a single dash.
  const taken = strict ? [...args] : args.filter((arg) => !/^-[^-]/.test(arg));
  const config = { args: taken, strict, allowPositionals: true, allowNegative: true };
  return nodeUtil.parseArgs(strict ? { ...config, options } : config).values;
}
