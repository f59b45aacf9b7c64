import type { Clock } from '../core/clock.js';
import type { TokenError } from '../core/token-error.js';
import { TokenDelivery, type TokenSink, type TokenSinkStatus } from './delivery.js';
import { retryBackoff, type RetryDelays } from './retry-backoff.js';
import type { ServiceAccountToken } from './token.js';

/** Receives what becomes of deliveries; a sink is known by its name. */
interface DeliveryOwner {
  /** Runs one delivery and publishes it as an operation. */
  traced(sink: string, deliver: () => Promise<void>): Promise<void>;
  delivered(sink: string, token: ServiceAccountToken): void;
  undelivered(sink: string, error: TokenError): void;
}

interface TokenDeliveriesOptions extends RetryDelays {
  readonly sinks: readonly TokenSink[];
  readonly sinkTimeoutMs: number;
  readonly persistent: boolean;
  readonly clock: Clock;
}

/** Delivers each token to all sinks. None of them waits for another. */
export class TokenDeliveries {
  readonly #deliveries: readonly TokenDelivery[];

  constructor(options: TokenDeliveriesOptions, owner: DeliveryOwner) {
    const { sinks, sinkTimeoutMs: timeoutMs, persistent: ref, clock } = options;
    this.#deliveries = sinks.map((sink) => {
      const delivery: TokenDelivery = new TokenDelivery(sink, {
        clock,
        backoff: retryBackoff(options),
        timeoutMs,
        ref,
        traced: (deliver) => owner.traced(delivery.name, deliver),
        onDelivered: (token) => owner.delivered(delivery.name, token),
        onFailed: (error) => owner.undelivered(delivery.name, error),
      });
      return delivery;
    });
  }

  /** Delivers the token to each sink now, or after the call in progress. */
  deliver(token: ServiceAccountToken): void {
    for (const delivery of this.#deliveries) delivery.deliver(token);
  }

  /** Resolves when no sink is being called, except one that is overdue. */
  async idle(): Promise<void> {
    await Promise.all(this.#deliveries.map((delivery) => delivery.idle()));
  }

  /** Resolves when the calls in progress have ended, or after 5 s. */
  async close(): Promise<void> {
    await Promise.all(this.#deliveries.map((delivery) => delivery.close()));
  }

  status(): readonly TokenSinkStatus[] {
    return this.#deliveries.map((delivery) => delivery.status());
  }
}
