import { Backoff } from '../core/backoff.js';
import { ClosedError, TokenError } from '../core/errors.js';
import { Emitter } from '../core/emitter.js';
import { Lifecycle } from '../core/lifecycle.js';
import {
  checkPath,
  fileSystem,
  flag,
  milliseconds,
  oneOf,
  PORT_OPTIONS,
  resolveOptions,
} from '../core/options.js';
import { markHandled } from '../core/outcome.js';
import type { Clock } from '../core/clock.js';
import type { FileSystem } from '../core/file-system.js';
import type { Random } from '../core/random.js';
import { readToken, tokenInFile } from './read-token.js';
import { TokenWatch, tokenWatcherFactory, type TokenWatcherFactory } from './token-watch.js';
import { DATE_LEEWAY_MS, type ServiceAccountToken, type TokenFormat } from './token.js';

/** Options of `TokenFile`; all may be left out, and `undefined` means the default. */
export interface TokenFileOptions {
  /**
   * `jwt` (default) knows dates and rejects half a token; `opaque` takes anything that fits a header and knows no
   * end.
   */
  readonly format?: TokenFormat | undefined;
  /**
   * A token is not handed out for longer than this without looking at the file, whatever the watcher says; at
   * most and by default 60 000, Kubernetes' rule for its clients.
   */
  readonly maxAgeMs?: number | undefined;
  /** Whether watching keeps the process alive; default false: a file that is read when asked is no work. */
  readonly persistent?: boolean | undefined;
  /** Closes it when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** Makes the watcher; default a `ResilientWatcher`. */
  readonly watcherFactory?: TokenWatcherFactory | undefined;
  readonly clock?: Clock | undefined;
  readonly fs?: FileSystem | undefined;
  readonly random?: Random | undefined;
}

/** What a `TokenFile` tells. No event's string, JSON or `inspect` form contains a token. */
export interface TokenFileEvents {
  /** The file holds another token. */
  token: [event: { readonly token: ServiceAccountToken }];
  /** The file cannot be read or holds no token; the last good one is kept. Once until it can. */
  unreadable: [event: { readonly error: TokenError }];
  /** The token should have been replaced by now (`expiresAt`) but is not refused yet; once for each token. */
  stale: [event: { readonly token: ServiceAccountToken }];
  /** The token is dated over a minute ahead of this machine's clock; once for each token. */
  skew: [event: { readonly aheadMs: number; readonly token: ServiceAccountToken }];
  /** The file cannot be watched, or only by polling. `get()` looks by itself every `maxAgeMs`. */
  degraded: [event: { readonly error: Error }];
  recovered: [];
  /** A listener failed. */
  error: [error: Error];
}

/** How it stands with a `TokenFile`. Plain data without secrets; times are epoch ms. */
export interface TokenFileStatus {
  readonly path: string;
  readonly state: 'idle' | 'open' | 'closed';
  readonly issuedAt: number | undefined;
  readonly expiresAt: number | undefined;
  /** Past `expiresAt`, though the server may still take it. */
  readonly stale: boolean;
  /** When the file last said what the token is. */
  readonly lastReadAt: number | undefined;
  /** Why it could not the last time, if so. */
  readonly lastError: string | undefined;
  readonly watching: boolean;
}

/** While there is no good token each request would read the file; this many may. */
const SHORTEST_AGE_MS = 1_000;

const OPTIONS = {
  format: oneOf<TokenFormat>('jwt', ['jwt', 'opaque']),
  maxAgeMs: milliseconds(60_000, { max: 60_000 }),
  persistent: flag(false),
  ...PORT_OPTIONS,
  watcherFactory: tokenWatcherFactory,
  fs: fileSystem('open', 'read', 'close'),
};

/**
 * The token in a file, always current: a pod's own token, or a web identity token of AWS or Azure.
 *
 * | state  | what happens                            | next                                                 |
 * |--------|-----------------------------------------|------------------------------------------------------|
 * | idle   | `start()`, the first `get()`            | open: watched                                        |
 * | open   | the watcher shows new content           | it is the token from now on                          |
 * |        | `get()` when the last check is too old,  | the file is read first; when that fails the last     |
 * |        | `reportUnauthorized()`                  | good token is kept until the server would refuse it  |
 * | any    | `close()`                               | closed                                               |
 *
 * It sets no timer: the wait is in the question. `maxAgeMs` is measured by the monotonic clock, so a jump of the
 * wall clock cannot make it stop reading.
 */
export class TokenFile extends Emitter<TokenFileEvents> {
  readonly path: string;
  readonly #options: ReturnType<typeof resolveOptions<typeof OPTIONS>>;
  readonly #watch: TokenWatch;
  readonly #lifecycle: Lifecycle;
  #reading: Promise<void> | undefined;
  /** Counts what the watcher showed: a read that began before is older. */
  #shown = 0;
  #token: ServiceAccountToken | undefined;
  #error: TokenError | undefined;
  #toldStale = false;
  #lookedAt = -Infinity;
  #lastReadAt: number | undefined;

  /**
   * Does nothing yet.
   * @throws {TypeError} {RangeError} for a wrong path or option.
   */
  constructor(path: string, options?: TokenFileOptions) {
    super();
    this.path = checkPath('TokenFile', 'path', path);
    this.#options = resolveOptions('TokenFile', options, OPTIONS);
    const { random, signal } = this.#options;
    this.#watch = new TokenWatch({
      ...this.#options,
      path,
      // A minute is what the reading by age allows anyway.
      backoff: new Backoff({ firstDelayMs: 1_000, maxDelayMs: 60_000, random }),
      startTimeoutMs: 10_000,
      onText: (text) => this.#onText(text),
      onDegraded: (error) => this.#tell('degraded', { error }),
      onRecovered: () => this.#tell('recovered'),
    });
    this.#lifecycle = new Lifecycle({
      signal,
      open: () => this.#watch.start(),
      run: () => (this.#isDue() ? this.#read() : undefined),
      end: () => Promise.all([this.#watch.close(), this.#reading]),
      over: () => new ClosedError(`The token file ${path} was closed`),
    });
  }

  /**
   * Watches the file and reads it; `get()` does so by itself. Resolves whether there is a token or not.
   * @throws {ClosedError} once closed.
   */
  start(): Promise<void> {
    return markHandled(this.#lifecycle.start());
  }

  /**
   * The current token. Reads the file only if it was not looked at for `maxAgeMs`, or if there is no good token.
   * @throws {TokenError} `ERR_TOKEN_EXPIRED` when it is refused by now, `ERR_TOKEN_UNAVAILABLE` when there never
   * was one; `cause` is why there is no better one.
   * @throws {ClosedError} once closed.
   */
  async get(): Promise<ServiceAccountToken> {
    this.#lifecycle.throwIfClosed();
    void this.start();
    if (this.#isDue()) await this.#read();
    this.#lifecycle.throwIfClosed();
    const token = this.#token;
    const now = this.#options.clock.now();
    const cause = this.#error;
    if (!token) throw new TokenError('ERR_TOKEN_UNAVAILABLE', `There is no token in ${this.path}`, { cause });
    if (token.notAfter <= now) {
      throw new TokenError('ERR_TOKEN_EXPIRED', `${this.path} holds only ${String(token)}`, { cause });
    }
    if (token.expiresAt <= now && !this.#toldStale) {
      this.#toldStale = true;
      this.#tell('stale', { token });
    }
    return token;
  }

  /**
   * Says that a server refused this token (401), or the current one: reads the file again, unless it has another
   * token by now, and resolves to the one to use. The promise may be ignored.
   */
  reportUnauthorized(token?: ServiceAccountToken): Promise<ServiceAccountToken> {
    if (!token || token.equals(this.#token)) this.#lookedAt = -Infinity;
    return markHandled(this.get());
  }

  status(): TokenFileStatus {
    const token = this.#token;
    const { state } = this.#lifecycle;
    return {
      path: this.path,
      state: state === 'idle' || state === 'closed' ? state : 'open',
      issuedAt: token?.issuedAt,
      expiresAt: token?.expiresAt,
      stale: token !== undefined && token.expiresAt <= this.#options.clock.now(),
      lastReadAt: this.#lastReadAt,
      lastError: this.#error?.message,
      watching: this.#watch.watching,
    };
  }

  /** Stops watching and awaits a read in flight. Never rejects; a second call returns the same promise. */
  close(): Promise<void> {
    return this.#lifecycle.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #isDue(): boolean {
    const { clock, maxAgeMs } = this.#options;
    const good = this.#token && !this.#error && this.#token.notAfter > clock.now();
    return clock.monotonic() - this.#lookedAt >= (good ? maxAgeMs : Math.min(maxAgeMs, SHORTEST_AGE_MS));
  }

  /** Reads the file, once for all who ask meanwhile. */
  #read(): Promise<void> {
    this.#reading ??= this.#readOnce().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #readOnce(): Promise<void> {
    const { fs, format } = this.#options;
    const shown = this.#shown;
    const found = await readToken(this.path, fs, format).catch((error: unknown) => error as TokenError);
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
    if (this.#lifecycle.state === 'closed') return;
    const { clock } = this.#options;
    this.#lookedAt = clock.monotonic();
    const wasUnreadable = this.#error !== undefined;
    this.#error = found instanceof TokenError ? found : undefined;
    if (found instanceof TokenError) {
      if (!wasUnreadable) this.#tell('unreadable', { error: found });
      return;
    }
    this.#lastReadAt = clock.now();
    if (found.equals(this.#token)) return;
    this.#token = found;
    this.#toldStale = false;
    this.#tell('token', { token: found });
    const aheadMs = found.aheadMs(clock.now());
    if (aheadMs > DATE_LEEWAY_MS) this.#tell('skew', { aheadMs, token: found });
  }

  /** Nothing is told after the end. */
  #tell<T extends keyof TokenFileEvents>(event: T, ...args: TokenFileEvents[T]): void {
    if (this.#lifecycle.state !== 'closed') this.emit(event, ...(args as never));
  }
}
