import type { ComponentEvents, ComponentStatus } from '../core/lifecycle/component.js';
import { seconds, type StatusDescription } from '../core/telemetry/status-description.js';
import type { TokenError } from '../core/errors/token-error.js';
import type { ListenerError } from '../core/errors/errors.js';
import type { Degradation, Expiry, Readable, Recovery, Unreadable } from '../core/lifecycle/events.js';
import type { WatcherWarning } from '../watch/watcher-events.js';
import type { ServiceAccountToken } from './token.js';
import type { TokenSinkStatus } from './delivery.js';

/** Why a token was requested. */
export type TokenWakeReason =
  /** `start()`. */
  | 'start'
  /** The schedule. */
  | 'timer'
  /** The previous attempt failed. */
  | 'retry'
  /** The projected token has new content. */
  | 'file'
  /** The wall clock jumped. */
  | 'clock'
  /** `reportUnauthorized()`. */
  | 'unauthorized'
  /** `refresh()`. */
  | 'refresh';

/** Events of `TokenRefresher`. No event's string, JSON or `inspect` form contains a token. */
export interface TokenRefresherEvents extends ComponentEvents {
  /** A new token is available, and its delivery has begun. */
  token: [event: { readonly token: ServiceAccountToken; readonly reason: TokenWakeReason }];
  /** A sink has received the token. */
  delivered: [event: { readonly sink: string; readonly token: ServiceAccountToken }];
  /** A sink failed; only this sink is retried. */
  undelivered: [event: { readonly sink: string; readonly error: TokenError }];
  /** An attempt failed; the current token is kept while it is valid. */
  retry: [
    event: { readonly error: TokenError; readonly consecutiveFailures: number; readonly delayMs: number },
  ];
  /**
   * `stale`: the current token should have been replaced (`expiresAt`), and is still accepted (`notAfter`); once for
   * each token. `subPath`, `limit`: a problem of the token file that watching cannot solve.
   */
  warning: [event: WatcherWarning];
  /** The server refuses the current token from now on (`notAfter`), and there is no newer one. Once for each token. */
  expired: [event: Expiry<ServiceAccountToken> & { readonly error: TokenError }];
  /** A new token is dated more than a minute ahead of the system clock; once, until a token is not. */
  skew: [event: { readonly aheadMs: number; readonly token: ServiceAccountToken }];
  /** `unhealthyAfter` attempts failed in a row, or the token expired. */
  unhealthy: [event: { readonly error: TokenError; readonly consecutiveFailures: number }];
  /** A token was received after `unhealthy`. */
  healthy: [];
  /** The token file cannot be read; tokens are requested by the schedule alone. Once until `readable`. */
  unreadable: [event: Unreadable];
  /** The token file can be read again. */
  readable: [event: Readable];
  /** The token file cannot be watched, or only by polling: its changes may be noticed late. */
  degraded: [event: Degradation];
  /** The token file is watched natively again. */
  recovered: [event: Recovery];
  /** A listener or a custom schedule failed, or the client cannot work (`ERR_TOKEN_CLIENT`). */
  error: [error: ListenerError | TokenError];
}

/** The status of a `TokenRefresher`. Plain data without secrets; times are epoch ms. */
export interface TokenRefresherStatus extends ComponentStatus {
  /** `failed`: the client cannot work (`ERR_TOKEN_CLIENT`) and is not called again. */
  readonly state: 'idle' | 'starting' | 'refreshing' | 'waiting' | 'retrying' | 'failed' | 'closed';
  /** For a liveness probe: false after `unhealthyAfter` failures in a row, and when the token has expired. */
  readonly healthy: boolean;
  /** When the current token was issued. */
  readonly issuedAt: number | null;
  /** When the current token should be replaced; null without a token, and for one that never expires. */
  readonly expiresAt: number | null;
  /** Whether the server refuses the current token from now on (`exp`). */
  readonly expired: boolean;
  /** When the next token will be requested. */
  readonly nextRefreshAt: number | null;
  /** Failed attempts in a row, so far. */
  readonly consecutiveFailures: number;
  /** Why the last attempt began. */
  readonly lastWakeReason: TokenWakeReason | null;
  /** When a token was last requested. */
  readonly lastAttemptAt: number | null;
  /** When a token was last received. */
  readonly lastMintAt: number | null;
  /** When a sink last accepted a token. */
  readonly lastDeliveryAt: number | null;
  /**
   * How far the current token was dated ahead of the system clock when it was received, ms; up to a minute counts as
   * 0.
   */
  readonly skewMs: number;
  /** Whether changes of the token file are noticed immediately. */
  readonly watching: boolean;
  /** The sinks, in the order of the option. */
  readonly sinks: readonly TokenSinkStatus[];
}

/** Ready: there is a token that the server accepts, even if requests for the next one fail. */
export const refresherDescription: StatusDescription<TokenRefresherStatus> = {
  health({ expired, lastError, lastMintAt }) {
    const why = lastError ? `: ${lastError.code ?? lastError.name}` : '';
    if (lastMintAt === null) return { unready: `there is no token yet${why}` };
    return { unready: expired ? `the token has expired${why}` : undefined };
  },
  *metrics({ expiresAt, nextRefreshAt, skewMs }) {
    yield* seconds('token.expiration.timestamp', expiresAt);
    yield* seconds('token.next_refresh.timestamp', nextRefreshAt);
    yield* seconds('token.clock_skew', skewMs);
  },
};
