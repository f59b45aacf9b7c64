import { inspect } from 'node:util';
import { join } from 'node:path';

import { checkPath, isNonEmptyString, matching, resolveOptions, type Option } from '../core/options.js';
import { SecretError } from './secret-error.js';
import type { Snapshot } from '../fs/snapshot.js';
import {
  MAX_SECRET_BYTES,
  noSecret,
  secretOptions,
  secretText,
  type ResolvedSecretFormat,
  type SecretFileOptions,
} from './secret-file.js';
import { WatchedValue, type WatchedValueStatus } from '../watch/watched-value.js';

/** The keys of a Secret that hold a username and a password. */
export interface CredentialKeys {
  /** Default `username`, as in a Secret of type `kubernetes.io/basic-auth`. */
  readonly username?: string | undefined;
  /** Default `password`. */
  readonly password?: string | undefined;
}

/**
 * A username and its password, both of one revision. Printed forms show only the username. The properties are getters
 * of the class, so object spread does not copy the password either.
 */
export class Credentials {
  readonly #username: string;
  readonly #password: string;
  /** The revision of the volume; undefined outside one. */
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
  constructor(directory: string | URL, keys?: CredentialKeys, options?: SecretFileOptions) {
    const { format, watching } = secretOptions('credentials', options);
    super({
      kind: 'credentials',
      path: checkPath('credentials', 'directory', directory),
      maxBytes: MAX_SECRET_BYTES,
      options: watching,
    });
    this.#keys = resolveOptions('credentials', keys, KEYS, 'key');
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

  protected isSame(a: Credentials, b: Credentials): boolean {
    return a.equals(b);
  }

  protected secretsOf({ password }: Credentials): readonly string[] {
    return [password];
  }

  protected unavailable(cause: Error | undefined): Error {
    return noSecret(this.path, cause);
  }
}

/**
 * The username and password in a mounted Secret, both of one revision, always current.
 *
 * ```ts
 * const login = credentials('/etc/db'); // keys username and password
 * const { username, password } = await login.get();
 * ```
 * @throws {TypeError | RangeError} for a wrong path, key or option.
 */
export function credentials(
  directory: string | URL,
  keys?: CredentialKeys,
  options?: SecretFileOptions,
): CredentialFiles {
  return new CredentialFiles(directory, keys, options);
}
