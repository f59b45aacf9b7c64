import type { TokenError } from '../core/token-error.js';
import { DATE_LEEWAY_MS } from './token.js';
import type { TokenRefresherStatus } from './refresher-status.js';

type Recorded = Pick<
  TokenRefresherStatus,
  'consecutiveFailures' | 'lastWakeReason' | 'lastAttemptAt' | 'lastMintAt' | 'lastDeliveryAt' | 'skewMs'
>;

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

  /** The current token has expired. */
  expired(): { readonly first: boolean; readonly unhealthy: boolean } {
    const first = !this.#expired;
    this.#expired = true;
    return { first, unhealthy: this.#markUnhealthy() };
  }

  /** Returns whether the refresher was healthy before. */
  #markUnhealthy(): boolean {
    const was = this.#healthy;
    this.#healthy = false;
    return was;
  }
}
