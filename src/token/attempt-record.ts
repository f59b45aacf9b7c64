import type { TokenError } from '../core/errors/token-error.js';
import type { TokenLease } from './lease.js';
import { DATE_LEEWAY_MS, latenessOf } from './token.js';
import type { TokenRefresherEvents, TokenRefresherStatus } from './refresher-status.js';

type Recorded = Pick<
  TokenRefresherStatus,
  'consecutiveFailures' | 'lastWakeReason' | 'lastAttemptAt' | 'lastMintAt' | 'lastDeliveryAt' | 'skewMs'
>;

/** What to report of a token that is due or has expired, and when there is more to report, ms. */
interface TokenEnd {
  readonly due?: number;
  readonly warning?: TokenRefresherEvents['warning'][0];
  readonly expired?: TokenRefresherEvents['expired'][0];
  readonly unhealthy?: TokenRefresherEvents['unhealthy'][0];
}

/** Records the attempts of a refresher, and decides which events are emitted: each `true` is returned once. */
export class AttemptRecord {
  /** Why the last failed attempt failed. */
  error: TokenError | undefined;
  /** The part of the status that is recorded here. */
  readonly recorded: { -readonly [K in keyof Recorded]: Recorded[K] } = {
    consecutiveFailures: 0,
    lastWakeReason: null,
    lastAttemptAt: null,
    lastMintAt: null,
    lastDeliveryAt: null,
    skewMs: 0,
  };
  readonly #unhealthyAfter: number;
  #healthy = true;
  #expired = false;
  #reportedStale: TokenLease | undefined;

  constructor(unhealthyAfter: number) {
    this.#unhealthyAfter = unhealthyAfter;
  }

  get healthy(): boolean {
    return this.#healthy;
  }

  /** @param aheadMs how far in the future the token is dated, ms. */
  succeeded(now: number, aheadMs: number): { readonly recovered: boolean; readonly skewed: boolean } {
    const recovered = !this.#healthy;
    const skewMs = aheadMs > DATE_LEEWAY_MS ? aheadMs : 0;
    const skewed = skewMs > 0 && this.recorded.skewMs === 0;
    this.#healthy = true;
    this.#expired = false;
    Object.assign(this.recorded, { consecutiveFailures: 0, lastMintAt: now, skewMs });
    return { recovered, skewed };
  }

  /**
   * Returns whether the refresher has become unhealthy.
   * @param isFatal whether no further attempt follows.
   */
  failed(error: TokenError, isFatal: boolean): boolean {
    this.error = error;
    this.recorded.consecutiveFailures += 1;
    return (isFatal || this.recorded.consecutiveFailures >= this.#unhealthyAfter) && this.#markUnhealthy();
  }

  /** The current token is due, or has expired while attempts fail. */
  ended(lease: TokenLease): TokenEnd {
    const { error } = this;
    const { consecutiveFailures } = this.recorded;
    const [remainingMs, acceptedMs] = [lease.remainingMs(), lease.acceptedMs()];
    // The wall clock was ahead when the alarm was set.
    if (remainingMs > 0) return { due: remainingMs };
    if (acceptedMs > 0) {
      const first = lease !== this.#reportedStale;
      this.#reportedStale = lease;
      return { due: acceptedMs, ...(first && { warning: this.#staleness(lease) }) };
    }
    if (!error) return {};
    const first = !this.#expired;
    this.#expired = true;
    return {
      ...(first && { expired: { current: lease.token, error } }),
      ...(this.#markUnhealthy() && { unhealthy: { error, consecutiveFailures } }),
    };
  }

  #staleness({ token }: TokenLease): TokenRefresherEvents['warning'][0] {
    const why = this.recorded.consecutiveFailures > 0 ? this.error?.message : undefined;
    return { code: 'stale', message: `The ${latenessOf(token)}: ${why ?? 'no newer one is issued'}` };
  }

  /** Returns whether the refresher was healthy before. */
  #markUnhealthy(): boolean {
    const was = this.#healthy;
    this.#healthy = false;
    return was;
  }
}
