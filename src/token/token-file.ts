import { basename } from 'node:path';

import { Backoff } from '../core/backoff.js';
import { Component, type ComponentEvents, type ComponentStatus } from '../core/component.js';
import { TokenError } from '../core/token-error.js';
import type { Degradation, Readable, Recovery, Unreadable } from '../core/events.js';
import type { LifecycleState } from '../core/lifecycle.js';
import {
  componentName,
  checkPath,
  fileSystem,
  flag,
  milliseconds,
  oneOf,
  PORT_OPTIONS,
  resolveOptions,
} from '../core/options.js';
import { markHandled } from '../core/outcome.js';
import { dateOrNull, type Clock } from '../core/clock.js';
import type { FileSystem } from '../core/file-system.js';
import type { Random } from '../core/random.js';
import type { ValueSource } from '../core/value-source.js';
import { absolutePath } from '../fs/absolute-path.js';
import { READ_CALLS } from '../fs/targets/read-limits.js';
import { readToken, tokenInFile } from './read-token.js';
import { TokenWatch, tokenWatcherFactory, type TokenWatcherFactory } from './token-watch.js';
import { DATE_LEEWAY_MS, type ServiceAccountToken, type TokenFormat } from './token.js';

/** Options of `TokenFile`; all may be left out, and `undefined` means the default. */
export interface TokenFileOptions {
  /** The name in its status and telemetry; default the base name of the path. */
  readonly name?: string | undefined;
  /**
   * `jwt` (default): the token has dates, and an incomplete one is rejected. `opaque`: any text that fits a header; it
   * never expires.
   */
  readonly format?: TokenFormat | undefined;
  /**
   * How long a token is returned without checking the file, ms, even if the watcher reports nothing. Default and
   * maximum 60 000, the rule of Kubernetes for its clients.
   */
  readonly maxAgeMs?: number | undefined;
  /** Whether watching keeps the process alive; default false. */
  readonly persistent?: boolean | undefined;
  /** Closes the token file when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** Creates the watcher; default a `ResilientWatcher`. */
  readonly watcherFactory?: TokenWatcherFactory | undefined;
  /** The clock. Default: the system clock. */
  readonly clock?: Clock | undefined;
  /** The file system. Default: `node:fs`. */
  readonly fs?: FileSystem | undefined;
  /** The source of jitter. Default: `Math.random`. */
  readonly random?: Random | undefined;
}

/** Events of `TokenFile`. No event's string, JSON or `inspect` form contains a token. */
export interface TokenFileEvents extends ComponentEvents {
  /** The file holds another token. */
  token: [event: { readonly token: ServiceAccountToken }];
  /** The file cannot be read or holds no token; the last good one is kept. Once until `readable`. */
  unreadable: [event: Unreadable];
  /** The file holds a token again. */
  readable: [event: Readable];
  /** The token should have been replaced (`expiresAt`) but is still accepted; once for each token. */
  stale: [event: { readonly token: ServiceAccountToken }];
  /** The token is dated more than a minute ahead of the system's clock; once for each token. */
  skew: [event: { readonly aheadMs: number; readonly token: ServiceAccountToken }];
  /** The file cannot be watched natively. `get()` reads it every `maxAgeMs` in any case. */
  degraded: [event: Degradation];
  /** The file is watched natively again. */
  recovered: [event: Recovery];
}

/** The status of a `TokenFile`. Plain data without secrets; times are epoch ms. */
export interface TokenFileStatus extends ComponentStatus {
  /** The watched path, absolute. */
  readonly path: string;
  readonly state: LifecycleState;
  /** When the current token was issued. */
  readonly issuedAt: number | null;
  /** When the current token expires; null without a token, and for one that never expires. */
  readonly expiresAt: number | null;
  /** Whether `expiresAt` has passed; the server may still accept the token. */
  readonly stale: boolean;
  /** When a token was last read from the file. */
  readonly lastReadAt: number | null;
  /** Since when the file cannot be read or holds no token; null while it does. */
  readonly unreadableSince: number | null;
  /** Whether changes of the file are noticed immediately. */
  readonly watching: boolean;
}

/** Without a valid token, `get()` reads the file at most once in this time, ms. */
const MIN_READ_INTERVAL_MS = 1_000;

const OPTIONS = {
  name: componentName(undefined),
  format: oneOf<TokenFormat>('jwt', ['jwt', 'opaque']),
  maxAgeMs: milliseconds(60_000, { max: 60_000 }),
  persistent: flag(false),
  ...PORT_OPTIONS,
  watcherFactory: tokenWatcherFactory,
  fs: fileSystem(...READ_CALLS),
};

/** The names of `TokenFileOptions`, for classes that pass them on. */
export const TOKEN_FILE_OPTION_NAMES: readonly string[] = Object.keys(OPTIONS);

/**
 * The token in a file, always current: a pod's own token, or a web identity token of AWS or Azure.
 *
 * | state   | what happens                              | next                                               |
 * |---------|-------------------------------------------|----------------------------------------------------|
 * | idle    | `start()`, the first `get()`              | running: watched                                   |
 * | running | the watcher shows new content             | that is the token                                  |
 * |         | `get()` after `maxAgeMs` without a check, | the file is read first; if that fails, the last    |
 * |         | `reportUnauthorized()`                    | good token is kept until the server refuses it     |
 * | any     | `close()`                                 | closed                                             |
 *
 * No timer is set: `get()` reads the file when necessary. `maxAgeMs` is measured by the monotonic clock, so a jump of
 * the wall clock cannot delay a read.
 */
export class TokenFile
  extends Component<TokenFileEvents, TokenFileStatus>
  implements ValueSource<ServiceAccountToken>
{
  readonly path: string;
  readonly #options: ReturnType<typeof resolveOptions<typeof OPTIONS>>;
  readonly #watch: TokenWatch;
  #reading: Promise<void> | undefined;
  /** The number of contents the watcher has shown; a read that began before the last of them is outdated. */
  #shown = 0;
  #token: ServiceAccountToken | undefined;
  #failure: { readonly error: TokenError; readonly at: number; readonly monotonic: number } | undefined;
  #reportedStale = false;
  /** Monotonic ms. */
  #checkedAt = -Infinity;
  #lastReadAt: number | null = null;

  /**
   * Does no I/O.
   * @throws {TypeError | RangeError} for a wrong path or option.
   */
  constructor(path: string | URL, options?: TokenFileOptions) {
    const file = absolutePath(checkPath('TokenFile', 'path', path));
    const resolved = resolveOptions('TokenFile', options, OPTIONS);
    const { name = basename(file), signal, clock, random, maxAgeMs } = resolved;
    super({ kind: 'TokenFile', name, signal, clock });
    this.path = file;
    this.#options = resolved;
    this.#watch = new TokenWatch({
      ...resolved,
      path: file,
      // `get()` reads once a minute in any case.
      backoff: new Backoff({ firstDelayMs: 1_000, maxDelayMs: 60_000, random }),
      startTimeoutMs: 10_000,
      pollIntervalMs: maxAgeMs,
      onText: (text) => this.#onText(text),
      onUnreadable: ({ error }) => this.#found(error),
      onReadable: () => void this.#read(),
      onDegraded: (event) => this.dispatch('degraded', event),
      onRecovered: (event) => this.dispatch('recovered', event),
    });
  }

  protected override get purpose(): string {
    return `read the token file "${this.path}"`;
  }

  protected override get secrets(): readonly string[] {
    return this.#token ? [this.#token.value] : [];
  }

  /** The last good token, which may have expired; undefined before the first one. */
  get current(): ServiceAccountToken | undefined {
    return this.#token;
  }

  /**
   * Watches the file and reads it; `get()` does the same if necessary. Resolves even if there is no token.
   * @throws {ClosedError} (rejects) after `close()`.
   */
  override start(): Promise<void> {
    return markHandled(super.start());
  }

  /**
   * Resolves to the current token. Reads the file only if it was not checked for `maxAgeMs`, or if there is no valid
   * token.
   * @throws {TokenError} `ERR_TOKEN_EXPIRED` when the server no longer accepts the token, `ERR_TOKEN_UNAVAILABLE` when
   * there has been none yet; `cause` says why there is no newer one.
   * @throws {ClosedError} after `close()`.
   */
  async get(): Promise<ServiceAccountToken> {
    this.throwIfClosed();
    void this.start();
    if (this.#isDue()) await this.#read();
    this.throwIfClosed();
    const token = this.#token;
    const now = this.#options.clock.now();
    const cause = this.#failure?.error;
    if (!token) {
      const reason = cause ? `: ${cause.message}` : '';
      const message = `There is no token yet in "${this.path}"${reason}`;
      throw new TokenError('ERR_TOKEN_UNAVAILABLE', message, { cause });
    }
    if (token.notAfter <= now) {
      throw new TokenError('ERR_TOKEN_EXPIRED', `${this.path} holds only ${String(token)}`, { cause });
    }
    if (token.expiresAt <= now && !this.#reportedStale) {
      this.#reportedStale = true;
      this.dispatch('stale', { token });
    }
    return token;
  }

  /**
   * Reports that a server refused a token (401), by default the current one. Reads the file again unless that token has
   * already been replaced, and resolves to the token to use. The promise may be ignored.
   */
  reportUnauthorized(token?: ServiceAccountToken): Promise<ServiceAccountToken> {
    if (!token || token.equals(this.#token)) this.#checkedAt = -Infinity;
    return markHandled(this.get());
  }

  status(): TokenFileStatus {
    const token = this.#token;
    return {
      name: this.name,
      state: this.lifecycleState,
      lastError: this.lastError,
      path: this.path,
      issuedAt: token?.issuedAt ?? null,
      expiresAt: dateOrNull(token?.expiresAt),
      stale: token !== undefined && token.expiresAt <= this.#options.clock.now(),
      lastReadAt: this.#lastReadAt,
      unreadableSince: this.#failure?.at ?? null,
      watching: this.#watch.watching,
    };
  }

  protected override onStart(): Promise<void> {
    return this.#watch.start();
  }

  protected override async onRunning(): Promise<void> {
    if (this.#isDue()) await this.#read();
  }

  protected override onClose(): Promise<unknown> {
    return Promise.all([this.#watch.close(), this.#reading]);
  }

  #isDue(): boolean {
    const { clock, maxAgeMs } = this.#options;
    const isGood = this.#token && !this.#failure && this.#token.notAfter > clock.now();
    const intervalMs = isGood ? maxAgeMs : Math.min(maxAgeMs, MIN_READ_INTERVAL_MS);
    return clock.monotonic() - this.#checkedAt >= intervalMs;
  }

  /** Reads the file, once for all concurrent callers. */
  #read(): Promise<void> {
    this.#reading ??= this.#readOnce().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #readOnce(): Promise<void> {
    const shown = this.#shown;
    const found = await readToken(this.path, this.#options, this.#options.format).catch(
      (error: unknown) => error as TokenError,
    );
    if (shown === this.#shown) this.#found(found);
  }

  #onText(text: string): void {
    this.#shown += 1;
    try {
      this.#found(tokenInFile(this.path, text, this.#options.format));
    } catch (error) {
      this.#found(error as TokenError);
    }
  }

  #found(found: ServiceAccountToken | TokenError): void {
    if (this.lifecycleState === 'closed') return;
    const { clock } = this.#options;
    this.#checkedAt = clock.monotonic();
    if (found instanceof TokenError) this.#failed(found);
    else this.#succeeded(found);
  }

  #failed(error: TokenError): void {
    const { clock } = this.#options;
    const isFirst = !this.#failure;
    this.recordError(error);
    this.#failure = {
      error,
      at: this.#failure?.at ?? clock.now(),
      monotonic: this.#failure?.monotonic ?? clock.monotonic(),
    };
    if (isFirst) this.dispatch('unreadable', { error });
  }

  #succeeded(token: ServiceAccountToken): void {
    const { clock } = this.#options;
    const failure = this.#failure;
    const isNew = !token.equals(this.#token);
    this.#lastReadAt = clock.now();
    this.#failure = undefined;
    if (isNew) {
      this.#token = token;
      this.#reportedStale = false;
    }
    if (failure) this.dispatch('readable', { unreadableMs: clock.monotonic() - failure.monotonic });
    // A listener may have caused it to be replaced; the newer one has been reported then.
    if (!isNew || this.#token !== token) return;
    this.dispatch('token', { token });
    const aheadMs = token.aheadMs(clock.now());
    if (aheadMs > DATE_LEEWAY_MS) this.dispatch('skew', { aheadMs, token });
  }
}
