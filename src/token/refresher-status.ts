import type { TokenError } from '../core/errors.js';
import type { ServiceAccountToken } from './token.js';
import type { TokenSinkStatus } from './delivery.js';

/** What made it ask for a token. */
export type TokenWakeReason =
  /** `start()`. */
  | 'start'
  /** The schedule. */
  | 'timer'
  /** The attempt before failed. */
  | 'retry'
  /** The projected token has new content. */
  | 'file'
  /** The wall clock jumped. */
  | 'clock'
  /** `reportUnauthorized()`. */
  | 'unauthorized'
  /** `refresh()`. */
  | 'refresh';

/** What a `TokenRefresher` tells. No event's string, JSON or `inspect` form contains a token. */
export interface TokenRefresherEvents {
  /** There is a new token, and its delivery has begun. */
  token: [event: { readonly token: ServiceAccountToken; readonly reason: TokenWakeReason }];
  /** A sink has it. */
  delivered: [event: { readonly sink: string; readonly token: ServiceAccountToken }];
  /** A sink failed; it is tried again alone. */
  undelivered: [event: { readonly sink: string; readonly error: TokenError }];
  /** There was no new token; the current one is kept while it is valid. */
  retry: [
    event: { readonly error: TokenError; readonly consecutiveFailures: number; readonly delayMs: number },
  ];
  /** The current token is over and there is no other; once for each token. */
  expired: [event: { readonly token: ServiceAccountToken; readonly error: TokenError }];
  /** A fresh token is dated over a minute ahead of this machine's clock; once until one is not. */
  skew: [event: { readonly aheadMs: number; readonly token: ServiceAccountToken }];
  /** `unhealthyAfter` attempts failed in a row, or the token expired. */
  unhealthy: [event: { readonly error: TokenError; readonly consecutiveFailures: number }];
  /** A token was got after `unhealthy`. */
  healthy: [];
  /** The token file cannot be watched, or only by polling: changes of it may be seen late. */
  degraded: [event: { readonly error: Error }];
  recovered: [];
  /** A listener or a schedule of yours failed. */
  error: [error: Error];
}

/** How it stands with a `TokenRefresher`. Plain data without secrets; times are epoch ms. */
export interface TokenRefresherStatus {
  readonly state: 'idle' | 'refreshing' | 'waiting' | 'retrying' | 'closed';
  /** Fit for a liveness probe: false after `unhealthyAfter` failures in a row, and when the token is over. */
  readonly healthy: boolean;
  readonly issuedAt: number | undefined;
  readonly expiresAt: number | undefined;
  readonly nextRefreshAt: number | undefined;
  readonly consecutiveFailures: number;
  readonly lastError: { readonly code: string; readonly message: string; readonly at: number } | undefined;
  readonly lastWakeReason: TokenWakeReason | undefined;
  /** When it last asked for a token, and when it last got one. */
  readonly lastAttemptAt: number | undefined;
  readonly lastMintAt: number | undefined;
  /** When a sink last took a token. */
  readonly lastDeliveryAt: number | undefined;
  /** How far the current token was dated ahead of this machine's clock when it came, ms. */
  readonly skewMs: number;
  /** Whether a change of the token file is seen when it happens. */
  readonly watching: boolean;
  readonly sinks: readonly TokenSinkStatus[];
}
