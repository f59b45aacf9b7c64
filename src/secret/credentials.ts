import { join } from 'node:path';

import { inspect } from '../core/ports/builtins.js';
import {
  checkPath,
  divideOptions,
  isNonEmptyString,
  isPlainObject,
  matching,
  resolveOptions,
  type Option,
} from '../core/options/options.js';
import type { Snapshot } from '../fs/snapshot.js';
import {
  MAX_SECRET_BYTES,
  SECRET_OPTION_NAMES,
  SecretError,
  secretOptions,
  secretText,
  type ResolvedSecretFormat,
  type SecretFileOptions,
} from './secret-file.js';
import { WatchedValue, type WatchedValueStatus } from '../watch/watched-value.js';

/** The keys of a Secret that contain a username and a password. */
export interface CredentialKeys {
  /** Default `username`, as in a Secret of type `kubernetes.io/basic-auth`. */
  readonly username?: string | undefined;
  /** Default `password`. */
  readonly password?: string | undefined;
}

/** Options of `credentials()`. All are optional, and `undefined` means the default. */
export interface CredentialOptions extends Omit<SecretFileOptions, 'parse'> {
  /** The keys of the Secret. Default `username` and `password`. */
  readonly keys?: CredentialKeys | undefined;
}

/**
 * A username and its password, both from one revision. Printed forms show only the username. The properties are getters
 * of the class, so object spread does not copy the password either.
 */
export class Credentials {
  readonly #username: string;
  readonly #password: string;
  /** The revision of the volume; undefined outside a volume. */
  readonly revision: string | undefined;

  constructor(username: string, password: string, revision: string | undefined) {
    this.#username = username;
    this.#password = password;
    this.revision = revision;
  }

  get username(): string {
    return this.#username;
  }

  get password(): string {
    return this.#password;
  }

  /** Whether both have the same username and password. */
  equals(other: Credentials | undefined): boolean {
    return other !== undefined && this.#username === other.#username && this.#password === other.#password;
  }

  toString(): string {
    return `Credentials(${this.#username}, [redacted])`;
  }

  toJSON(): Record<string, string> {
    return { username: this.#username, password: '[redacted]' };
  }

  [inspect.custom](): string {
    return this.toString();
  }
}

const OPTIONS = { keys: matching<CredentialKeys>({}, 'an object with username, password', isPlainObject) };
const KEYS = { username: keyName('username'), password: keyName('password') };

function keyName(fallback: string): Option<string> {
  return matching(fallback, 'the name of a key', (key) => isNonEmptyString(key) && !key.includes('\0'));
}

/** The credentials in a mounted Secret, always current; created by `credentials()`. */
export class CredentialFiles extends WatchedValue<Credentials> {
  readonly #keys: { readonly username: string; readonly password: string };
  readonly #format: ResolvedSecretFormat;

  /**
   * Does no I/O.
   * @throws {TypeError | RangeError} for a wrong path, key or option.
   */
  constructor(directory: string | URL, options?: CredentialOptions) {
    const { own, rest } = divideOptions('credentials', options, OPTIONS, SECRET_OPTION_NAMES);
    const { format, watching } = secretOptions('credentials', rest);
    super({
      kind: 'credentials',
      noun: 'secret',
      path: checkPath('credentials', 'directory', directory),
      maxBytes: MAX_SECRET_BYTES,
      options: watching,
    });
    this.#keys = resolveOptions('credentials', own.keys, KEYS, 'key');
    this.#format = format;
  }

  status(): WatchedValueStatus {
    return this.baseStatus();
  }

  protected parse(snapshot: Snapshot): Credentials {
    if (snapshot.kind === 'file') {
      throw new SecretError('ERR_SECRET_MISSING', `"${this.path}" is a file, not a directory`);
    }
    const textOf = (key: string): string =>
      secretText(join(this.path, key), snapshot.files.get(key), this.#format);
    return new Credentials(textOf(this.#keys.username), textOf(this.#keys.password), snapshot.revision);
  }

  protected secretsOf({ password }: Credentials): readonly string[] {
    return [password];
  }

  protected unavailable(message: string, options: ErrorOptions): Error {
    return new SecretError('ERR_SECRET_UNAVAILABLE', message, options);
  }
}

/**
 * The username and password in a mounted Secret, both from one revision, always current.
 *
 * ```ts
 * const login = credentials('/etc/db'); // keys username and password
 * const { username, password } = await login.get();
 * const other = credentials('/etc/mq', { keys: { username: 'user' }, name: 'mq' });
 * ```
 * @throws {TypeError | RangeError} for a wrong path, key or option.
 */
export function credentials(directory: string | URL, options?: CredentialOptions): CredentialFiles {
  return new CredentialFiles(directory, options);
}
