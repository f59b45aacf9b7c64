import { Backoff, type BackoffOptions } from '../core/scheduling/backoff.js';
import { lastErrorOf, type LastError } from '../core/lifecycle/component.js';
import { waitAtMost, withDeadline } from '../core/scheduling/deadline.js';
import { ClosedError } from '../core/errors/errors.js';
import { TokenError } from '../core/errors/token-error.js';
import type { Clock } from '../core/ports/clock.js';
import { redactError } from '../core/errors/resilient-error.js';
import { Worker } from '../core/scheduling/worker.js';
import type { ServiceAccountToken } from './token.js';

/**
 * A function that tokens are delivered to. If it throws or rejects, it is called again with the newest token. Its calls
 * never overlap, so that an older token cannot overwrite a newer one. It must not await the refresher's `close()`. The
 * name of the function is shown in `status()`.
 */
export type TokenSink = (
  token: ServiceAccountToken,
  options: { readonly signal: AbortSignal },
) => void | Promise<void>;

/** The status of one sink. Times are epoch ms. */
export interface TokenSinkStatus {
  /** The name of the function. */
  readonly name: string;
  /** `overdue`: its signal was aborted after `sinkTimeoutMs`, but it is still running. */
  readonly state: 'idle' | 'delivering' | 'overdue' | 'retrying';
  /** When the sink last accepted a token. */
  readonly lastDeliveryAt: number | null;
  /** Failed calls in a row, so far. */
  readonly consecutiveFailures: number;
  /** The error of the last failed call; kept after a success. */
  readonly lastError: LastError | null;
}

/** How long `close()` waits for a sink that ignores its signal. */
const SHUTDOWN_GRACE_MS = 5_000;

interface TokenDeliveryOptions {
  readonly clock: Clock;
  readonly retryDelays: BackoffOptions;
  readonly sinkTimeoutMs: number;
  /** Whether the wait between two attempts keeps the process alive. */
  readonly persistent: boolean;
  /** Runs one delivery and publishes it as an operation. */
  readonly traced: (sink: string, deliver: () => Promise<void>) => Promise<void>;
  readonly onDelivered: (sink: string, token: ServiceAccountToken) => void;
  readonly onFailed: (sink: string, error: TokenError) => void;
}

/**
 * Delivers the newest token to one sink, and retries until that succeeds (core/scheduling/worker.ts has the states).
 */
export class TokenDelivery {
  readonly name: string;
  readonly #sink: TokenSink;
  readonly #options: TokenDeliveryOptions;
  readonly #backoff: Backoff;
  readonly #worker: Worker<ServiceAccountToken>;
  readonly #controller = new AbortController();
  #attempt: Promise<boolean> | undefined;
  #failures = 0;
  #lastDeliveryAt: number | null = null;
  #lastError: LastError | null = null;

  constructor(sink: TokenSink, options: TokenDeliveryOptions) {
    this.name = sink.name || 'sink';
    this.#sink = sink;
    this.#options = options;
    this.#backoff = new Backoff(options.retryDelays);
    this.#worker = new Worker({
      ...options,
      merge: (_earlier, newer) => newer,
      restMs: () => 0,
      run: (token) => this.#deliver(token),
    });
  }

  /** Delivers the token now, or after the call in progress. */
  deliver(token: ServiceAccountToken): void {
    this.#worker.give(token);
  }

  /** Resolves when no call is in progress, except one that is overdue. */
  async idle(): Promise<void> {
    while (this.#attempt) await this.#attempt;
  }

  /** Resolves when the call in progress has ended, or after 5 s. */
  async close(): Promise<void> {
    this.#controller.abort(new ClosedError('The token refresher was closed'));
    const { clock } = this.#options;
    await waitAtMost(() => this.#worker.close(), { clock, timeoutMs: SHUTDOWN_GRACE_MS });
  }

  status(): TokenSinkStatus {
    return {
      name: this.name,
      state: this.#state,
      lastDeliveryAt: this.#lastDeliveryAt,
      consecutiveFailures: this.#failures,
      lastError: this.#lastError,
    };
  }

  get #state(): TokenSinkStatus['state'] {
    const { state } = this.#worker;
    if (state === 'running') return this.#attempt ? 'delivering' : 'overdue';
    return state === 'retrying' ? state : 'idle';
  }

  /** Resolves to the delay before the next attempt, ms; undefined if the token was delivered. */
  async #deliver(token: ServiceAccountToken): Promise<number | undefined> {
    const { clock, sinkTimeoutMs: timeoutMs, traced } = this.#options;
    let call = Promise.resolve();
    const callSink = (signal: AbortSignal): Promise<void> => {
      call = (async () => this.#sink(token, { signal }))();
      return call;
    };
    const late = (): Error => new TokenError('ERR_TOKEN_TIMEOUT', `no answer within ${timeoutMs} ms`);
    const { signal } = this.#controller;
    const inTime = traced(this.name, () => withDeadline(callSink, { clock, timeoutMs, signal, late }));
    this.#attempt = inTime.then(
      () => this.#delivered(token),
      (error: unknown) => this.#failed(token, error),
    );
    const isInTime = await this.#attempt;
    this.#attempt = undefined;
    if (isInTime) return undefined;
    // The call timed out but may still be running. A second call at the same time could be overwritten by it.
    const isDone = await call.then(
      () => this.#delivered(token),
      () => false, // Already reported.
    );
    return isDone ? undefined : this.#backoff.next();
  }

  #delivered(token: ServiceAccountToken): true {
    const { clock, onDelivered } = this.#options;
    this.#failures = 0;
    this.#lastDeliveryAt = clock.now();
    this.#backoff.reset();
    onDelivered(this.name, token);
    return true;
  }

  #failed(token: ServiceAccountToken, thrown: unknown): false {
    if (this.#controller.signal.aborted) return false;
    const { clock, onFailed } = this.#options;
    const cause = redactError(thrown, [token.value]);
    const message = `Cannot deliver the token to "${this.name}": ${cause.message}`;
    const error = new TokenError('ERR_TOKEN_SINK', message, { cause });
    this.#failures += 1;
    this.#lastError = lastErrorOf(error, clock.now());
    onFailed(this.name, error);
    return false;
  }
}
