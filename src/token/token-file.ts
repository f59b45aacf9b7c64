import { TokenError } from '../core/errors/token-error.js';
import { Alarm } from '../core/scheduling/alarm.js';
import { dateOrNull } from '../core/ports/clock.js';
import { checkPath, divideOptions, oneOf } from '../core/options/options.js';
import { markHandled } from '../core/scheduling/outcome.js';
import { expiryVerdict, seconds, type StatusDescription } from '../core/telemetry/status-description.js';
import type { Snapshot } from '../fs/snapshot.js';
import {
  lastUpdate,
  VALUE_OPTION_NAMES,
  WatchedValue,
  type WatchedValueEvents,
  type WatchedValueOptions,
  type WatchedValueStatus,
} from '../watch/watched-value.js';
import { TEXT_PARSER, TextValues, type TextParser } from '../watch/run-parser.js';
import { TokenLease } from './lease.js';
import { MAX_TOKEN_BYTES, textIn, tokenIn } from './read-token.js';
import { DATE_LEEWAY_MS, latenessOf, type ServiceAccountToken, type TokenFormat } from './token.js';

/** Options of `TokenFile`. All are optional, and `undefined` means the default. */
export interface TokenFileOptions extends WatchedValueOptions {
  /**
   * `jwt` (default): the token has dates, and an incomplete one is rejected. `opaque`: any text that fits a header; it
   * never expires.
   */
  readonly format?: TokenFormat | undefined;
  /**
   * Finds the token in the text of the file, such as `access_token` in JSON. If it throws, rejects, returns no text, or has
   * not ended after ten seconds, the contents are `rejected` (`ERR_TOKEN_MALFORMED`). Default: the text is the token.
   */
  readonly parse?: TextParser | undefined;
}

/**
 * Events of `TokenFile`. No event's string, JSON or `inspect` form contains a token. A `warning` with the code `stale`
 * says that the token should have been replaced (`expiresAt`) and is still accepted (`notAfter`); once for each token.
 */
export interface TokenFileEvents extends WatchedValueEvents<ServiceAccountToken> {
  /** The token is dated more than a minute ahead of the system clock; once for each token. */
  skew: [event: { readonly aheadMs: number; readonly token: ServiceAccountToken }];
}

/** The status of a `TokenFile`. Plain data without secrets; times are epoch ms. */
export interface TokenFileStatus extends WatchedValueStatus {
  /** When the current token was issued. */
  readonly issuedAt: number | null;
  /** When the current token should be replaced; null without a token, and for one that never expires. */
  readonly expiresAt: number | null;
  /** Whether `expiresAt` has passed; the server may still accept the token. */
  readonly stale: boolean;
  /** Whether the server refuses the token from now on (`exp`). */
  readonly expired: boolean;
}

const OPTIONS = { format: oneOf<TokenFormat>('jwt', ['jwt', 'opaque']), parse: TEXT_PARSER };

/** Ready: there is a token that the server accepts. One that is replaced late is a warning. */
export const tokenFileDescription: StatusDescription<TokenFileStatus> = {
  health: ({ available, expired }) => expiryVerdict(available, expired),
  *metrics(status) {
    yield* seconds('token.expiration.timestamp', status.expiresAt);
    yield lastUpdate(status);
  },
};

/** The names of `TokenFileOptions`, for classes that pass them on. */
export const TOKEN_FILE_OPTION_NAMES: readonly string[] = [...Object.keys(OPTIONS), ...VALUE_OPTION_NAMES];

/**
 * The token in a file, always current: a pod's own token, or a web identity token of AWS or Azure. Even without
 * events, the file is checked every `resyncIntervalMs` (5 s), by the monotonic clock. Kubernetes asks its clients to
 * read it once a minute.
 */
export class TokenFile extends WatchedValue<ServiceAccountToken, TokenFileEvents, TokenFileStatus> {
  readonly #values: TextValues<ServiceAccountToken>;
  readonly #staleness: Alarm;
  #reportedStale: ServiceAccountToken | undefined;
  #lease: TokenLease | undefined;

  /**
   * Does no I/O.
   * @throws {TypeError | RangeError} for a wrong path or option.
   */
  constructor(path: string | URL, options?: TokenFileOptions) {
    const { own, rest } = divideOptions('TokenFile', options, OPTIONS, VALUE_OPTION_NAMES);
    super({
      kind: 'TokenFile',
      noun: 'token',
      path: checkPath('TokenFile', 'path', path),
      maxBytes: MAX_TOKEN_BYTES,
      options: rest,
      description: tokenFileDescription,
    });
    const make = (text: string): ServiceAccountToken => tokenIn(this.path, text, own.format);
    this.#values = new TextValues(own.parse, make, (why, cause) => {
      const message = `The option "parse" ${why}, for ${this.path}`;
      return new TokenError('ERR_TOKEN_MALFORMED', message, { cause });
    });
    const onJump = (): void => void this.#staleness.bringForward(0);
    this.#staleness = new Alarm(this.clock, false, () => this.#watchStaleness(), onJump);
  }

  /**
   * Resolves to the current token; the first call starts watching.
   * @throws {TokenError} `ERR_TOKEN_EXPIRED` when the server no longer accepts the token, `ERR_TOKEN_UNAVAILABLE` when
   * there has been none yet; `cause` says why there is no newer one.
   * @throws {ClosedError} after `close()`; the signal's reason when that has aborted.
   */
  override async get(): Promise<ServiceAccountToken> {
    // An expired token may have been replaced while the machine was suspended.
    if (this.#leaseOf(await super.get()).acceptedMs() <= 0) await this.check();
    const token = await super.get();
    if (this.#leaseOf(token).acceptedMs() <= 0) {
      const message = `${this.path} contains only ${String(token)}`;
      throw new TokenError('ERR_TOKEN_EXPIRED', message, { cause: this.refusal });
    }
    return token;
  }

  /**
   * Reports that a server refused a token (401), by default the current one. Checks the file unless that token has
   * already been replaced, and resolves to the token to use. The promise may be ignored.
   */
  reportUnauthorized(token?: ServiceAccountToken): Promise<ServiceAccountToken> {
    return markHandled(this.#replacementOf(token));
  }

  status(): TokenFileStatus {
    const { current: token } = this;
    const lease = token && this.#leaseOf(token);
    return {
      ...this.baseStatus(),
      issuedAt: token?.issuedAt ?? null,
      expiresAt: dateOrNull(token?.expiresAt),
      stale: lease !== undefined && lease.remainingMs() <= 0,
      expired: lease !== undefined && lease.acceptedMs() <= 0,
    };
  }

  protected parse(snapshot: Snapshot): ServiceAccountToken | Promise<ServiceAccountToken> {
    const text = textIn(this.path, snapshot);
    return this.#values.of(text, { clock: this.clock, signal: this.lifetime.signal });
  }

  protected secretsOf(token: ServiceAccountToken): readonly string[] {
    return [...this.#values.secretsOf(token), token.value];
  }

  protected unavailable(message: string, options: ErrorOptions): Error {
    return new TokenError('ERR_TOKEN_UNAVAILABLE', message, options);
  }

  protected override onReported(): void {
    const { current: token } = this;
    const aheadMs = token?.aheadMs(this.clock.now()) ?? 0;
    if (token && aheadMs > DATE_LEEWAY_MS) this.dispatch('skew', { aheadMs, token });
    if (!this.lifetime.ended) this.#watchStaleness();
  }

  protected override onClose(): Promise<void> {
    this.#staleness.clear();
    return super.onClose();
  }

  /** Warns of a token that is replaced late, or sets the alarm for when that is known. */
  #watchStaleness(): void {
    this.#staleness.clear();
    const { current: token } = this;
    if (!token || token.expiresAt === token.notAfter || token === this.#reportedStale) return;
    const remainingMs = this.#leaseOf(token).remainingMs();
    if (remainingMs > 0) {
      this.#staleness.set(remainingMs);
      return;
    }
    this.#reportedStale = token;
    const message = `"${this.path}": the ${latenessOf(token)}; see why kubelet does not renew it`;
    this.dispatch('warning', { code: 'stale', message });
  }

  /** Begins when the token is received. */
  #leaseOf(token: ServiceAccountToken): TokenLease {
    if (this.#lease?.token !== token) this.#lease = new TokenLease(token, this.clock);
    return this.#lease;
  }

  async #replacementOf(refused = this.current): Promise<ServiceAccountToken> {
    if (!refused || refused.equals(this.current)) await this.check();
    return this.get();
  }
}
