import { inspect, isUtf8 } from '../core/ports/builtins.js';
import { CodedError, recognize } from '../core/errors/resilient-error.js';
import { checkPath, divideOptions, flag, oneOf, optional } from '../core/options/options.js';
import { utf16In, withoutLineEnds } from '../fs/read-file.js';
import { FileSnapshot, type Snapshot } from '../fs/snapshot.js';
import {
  VALUE_OPTION_NAMES,
  WatchedValue,
  type WatchedValueOptions,
  type WatchedValueStatus,
} from '../watch/watched-value.js';
import { TEXT_PARSER, TextValues, type TextParser } from '../watch/run-parser.js';

/** A secret on disk cannot be used. The last good value is kept, and watching continues. */
export class SecretError extends CodedError<'SecretError'> {
  override readonly name = 'SecretError';
}
recognize(SecretError, 'SecretError');

/** How the bytes of a secret become text. */
export type SecretEncoding = 'utf8' | 'latin1' | 'base64' | 'hex';

/** Options for reading a secret, in addition to those for watching it. */
export interface SecretFormat {
  /**
   * Removes the line breaks at the end, as a shell does, and a byte order mark; spaces may be part of a password.
   * Default true for `utf8` and `latin1`: `echo` and editors end a file with a newline, and
   * `kubectl create secret --from-file` keeps it. Not with `base64` and `hex`, where it may be part of the key.
   */
  readonly trim?: boolean | undefined;
  /**
   * How the bytes become text. `base64` and `hex` encode them, for keys that are binary. Default `utf8`, which rejects
   * other bytes, and NULs.
   */
  readonly encoding?: SecretEncoding | undefined;
}

/** Options of `SecretFile`. All are optional, and `undefined` means the default. */
export interface SecretFileOptions extends WatchedValueOptions, SecretFormat {
  /**
   * Finds the secret in the text of the file, such as a field of JSON. If it throws, rejects, returns no text, or has not
   * ended after ten seconds, the contents are `rejected` (`ERR_SECRET_INVALID`). Default: the text is the secret.
   */
  readonly parse?: TextParser | undefined;
}

const ENCODINGS: readonly SecretEncoding[] = ['utf8', 'latin1', 'base64', 'hex'];

const SECRET_FORMAT = {
  trim: optional(flag(true)),
  encoding: oneOf<SecretEncoding>('utf8', ENCODINGS),
};

/** The names of `SecretFileOptions` but for `parse`, for classes that pass them on. */
export const SECRET_OPTION_NAMES: readonly string[] = [...Object.keys(SECRET_FORMAT), ...VALUE_OPTION_NAMES];

/** How a secret is read, with defaults filled in. */
export interface ResolvedSecretFormat {
  readonly trim: boolean;
  readonly encoding: SecretEncoding;
}

/**
 * Splits the options into how the secret is read, with defaults filled in, and how its files are watched.
 * @throws {TypeError} for an unknown option, a wrong format, or `trim` with an encoding of binary keys.
 */
export function secretOptions(
  owner: string,
  options: (WatchedValueOptions & SecretFormat) | undefined,
): { readonly format: ResolvedSecretFormat; readonly watching: WatchedValueOptions } {
  const { own, rest } = divideOptions(owner, options, SECRET_FORMAT, VALUE_OPTION_NAMES);
  const { trim, encoding } = own;
  const isText = encoding === 'utf8' || encoding === 'latin1';
  if (trim === true && !isText) {
    throw new TypeError(`${owner}: "trim" has no effect with the encoding "${encoding}"`);
  }
  return { format: { trim: trim ?? isText, encoding }, watching: rest };
}

/** 1 MiB: the API server accepts no larger Secret. */
export const MAX_SECRET_BYTES = 1_048_576;

/** A secret that is not printed by accident: only `value` returns it. Logs, errors and JSON show `[redacted]`. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The secret itself. */
  get value(): string {
    return this.#value;
  }

  /** Whether both are the same secret. */
  equals(other: Secret | undefined): boolean {
    return other !== undefined && this.#value === other.#value;
  }

  toString(): string {
    return '[redacted]';
  }

  toJSON(): string {
    return '[redacted]';
  }

  [inspect.custom](): string {
    return 'Secret [redacted]';
  }
}

/**
 * A secret in one file, always current: a password, an API key, a webhook secret. The contents may have any form; for a
 * JWT, use `TokenFile`, which reads its dates.
 *
 * ```ts
 * const password = new SecretFile('/etc/db/password');
 * const pool = new pg.Pool({ user: 'app', password: async () => (await password.get()).value });
 * ```
 */
export class SecretFile extends WatchedValue<Secret> {
  readonly #format: ResolvedSecretFormat;
  readonly #values: TextValues<Secret>;

  /**
   * Does no I/O.
   * @throws {TypeError | RangeError} for a wrong path or option.
   */
  constructor(path: string | URL, options?: SecretFileOptions) {
    const { own, rest } = divideOptions('SecretFile', options, { parse: TEXT_PARSER }, SECRET_OPTION_NAMES);
    const { format, watching } = secretOptions('SecretFile', rest);
    super({
      kind: 'SecretFile',
      noun: 'secret',
      path: checkPath('SecretFile', 'path', path),
      maxBytes: MAX_SECRET_BYTES,
      options: watching,
    });
    this.#format = format;
    this.#values = new TextValues(
      own.parse,
      (text) => new Secret(text),
      (why, cause) => {
        const message = `The option "parse" ${why}, for "${this.path}"`;
        return new SecretError('ERR_SECRET_INVALID', message, { cause });
      },
    );
  }

  status(): WatchedValueStatus {
    return this.baseStatus();
  }

  protected parse(snapshot: Snapshot): Secret | Promise<Secret> {
    const file = snapshot.kind === 'file' ? snapshot : undefined;
    if (!file && snapshot.kind !== 'missing') {
      throw new SecretError('ERR_SECRET_MISSING', `"${this.path}" is a directory, not a file`);
    }
    const text = secretText(this.path, file, this.#format);
    return this.#values.of(text, { clock: this.clock, signal: this.lifetime.signal });
  }

  protected secretsOf(secret: Secret): readonly string[] {
    return [...this.#values.secretsOf(secret), secret.value];
  }

  protected unavailable(message: string, options: ErrorOptions): Error {
    return new SecretError('ERR_SECRET_UNAVAILABLE', message, options);
  }
}

/**
 * The text of a file that contains a secret.
 * @throws {SecretError} when it is missing, empty, too large or not text. The message never quotes the file.
 */
export function secretText(
  path: string,
  file: FileSnapshot | undefined,
  { trim, encoding }: ResolvedSecretFormat,
): string {
  if (!file) throw new SecretError('ERR_SECRET_MISSING', `"${path}" does not exist`);
  const { size } = file;
  const content = FileSnapshot.bytesOf(file);
  if (!content) {
    const message = `"${path}" has ${size} bytes; a secret has at most ${MAX_SECRET_BYTES}`;
    throw new SecretError('ERR_SECRET_INVALID', message);
  }
  const what = encoding === 'utf8' ? notText(content) : undefined;
  if (what !== undefined) throw new SecretError('ERR_SECRET_INVALID', `"${path}" ${what}`);
  const text = content.toString(encoding);
  if (text === '' || (trim && text.trim() === '')) {
    const why = size === 0 ? 'is empty' : 'contains only white space';
    throw new SecretError('ERR_SECRET_INVALID', `"${path}" ${why}`);
  }
  return trim ? withoutLineEnds(text.startsWith('\uFEFF') ? text.slice(1) : text) : text;
}

function notText(content: Buffer): string | undefined {
  const advice = 'set the option "encoding" for a secret that is not text';
  const isText = isUtf8(content) && !content.includes(0);
  if (isText) return undefined;
  return `${utf16In(content) ?? (isUtf8(content) ? 'contains a NUL byte' : 'is not valid UTF-8')}; ${advice}`;
}
