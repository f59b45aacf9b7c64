import type { TokenError } from '../core/errors.js';
import { DATE_LEEWAY_MS } from './token.js';
import type { TokenRefresherStatus, TokenWakeReason } from './refresher-status.js';

type Told = Pick<
  TokenRefresherStatus,
  | 'consecutiveFailures'
  | 'lastError'
  | 'lastWakeReason'
  | 'lastAttemptAt'
  | 'lastMintAt'
  | 'lastDeliveryAt'
  | 'skewMs'
>;

/** What a refresher remembers of its attempts, and which of it is worth telling: each `true` is told once. */
export class RefresherRecord {
  readonly #unhealthyAfter: number;
  #healthy = true;
  #expired = false;
  #failure: { readonly error: TokenError; readonly at: number } | undefined;
  #told: Omit<Told, 'lastError'> = {
    consecutiveFailures: 0,
    lastWakeReason: undefined,
    lastAttemptAt: undefined,
    lastMintAt: undefined,
    lastDeliveryAt: undefined,
    skewMs: 0,
  };

  constructor(unhealthyAfter: number) {
    this.#unhealthyAfter = unhealthyAfter;
  }

  get healthy(): boolean {
    return this.#healthy;
  }

  /** What the last failed attempt failed with. */
  get error(): TokenError | undefined {
    return this.#failure?.error;
  }

  attempted(reason: TokenWakeReason, now: number): void {
    this.#told = { ...this.#told, lastWakeReason: reason, lastAttemptAt: now };
  }

  delivered(now: number): void {
    this.#told = { ...this.#told, lastDeliveryAt: now };
  }

  /** @param aheadMs how far the token is dated ahead of `now`. */
  succeeded(now: number, aheadMs: number): { readonly recovered: boolean; readonly skewed: boolean } {
    const recovered = !this.#healthy;
    const skewMs = aheadMs > DATE_LEEWAY_MS ? aheadMs : 0;
    const skewed = skewMs > 0 && this.#told.skewMs === 0;
    this.#healthy = true;
    this.#expired = false;
    this.#told = { ...this.#told, consecutiveFailures: 0, lastMintAt: now, skewMs };
    return { recovered, skewed };
  }

  /** Returns whether it has become unhealthy. */
  failed(error: TokenError, now: number): boolean {
    this.#failure = { error, at: now };
    this.#told = { ...this.#told, consecutiveFailures: this.#told.consecutiveFailures + 1 };
    return this.#told.consecutiveFailures >= this.#unhealthyAfter && this.#markUnhealthy();
  }

  /** The current token is over. */
  expired(): { readonly first: boolean; readonly unhealthy: boolean } {
    const first = !this.#expired;
    this.#expired = true;
    return { first, unhealthy: this.#markUnhealthy() };
  }

  told(): Told {
    const failure = this.#failure;
    const lastError = failure && {
      code: failure.error.code,
      message: failure.error.message,
      at: failure.at,
    };
    return { ...this.#told, lastError };
  }

  #markUnhealthy(): boolean {
    const was = this.#healthy;
    this.#healthy = false;
    return was;
  }
}
