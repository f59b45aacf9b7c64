import type { Backoff } from '../core/backoff.js';
import { withDeadline } from '../core/deadline.js';
import { ClosedError, TokenError } from '../core/errors.js';
import type { Clock } from '../core/clock.js';
import { describe } from '../core/options.js';
import { sleep } from '../core/sleep.js';
import { withoutTokens, type ServiceAccountToken } from './token.js';

/**
 * A place a token is delivered to. It has failed when it throws or rejects, and is then called again with the
 * newest token. It is never called while a call of it is still running, so an older token cannot overwrite a
 * newer one; so it must not wait for the refresher's own `close()`. Its function name is shown in `status()`.
 */
export type TokenSink = (
  token: ServiceAccountToken,
  options: { readonly signal: AbortSignal },
) => void | Promise<void>;

/** What is known of one sink. Times are epoch ms. */
export interface TokenSinkStatus {
  readonly name: string;
  /** `overdue`: it was told to stop after `sinkTimeoutMs` and has not. */
  readonly state: 'idle' | 'delivering' | 'overdue' | 'retrying';
  readonly lastDeliveryAt: number | undefined;
  readonly consecutiveFailures: number;
  readonly lastError: string | undefined;
}

/** A sink that ignores its signal cannot hold up an end for longer. */
const SHUTDOWN_GRACE_MS = 5_000;

interface TokenDeliveryOptions {
  readonly clock: Clock;
  readonly backoff: Backoff;
  readonly timeoutMs: number;
  /** Whether the wait between two attempts keeps the process alive. */
  readonly ref: boolean;
  readonly onDelivered: (token: ServiceAccountToken) => void;
  readonly onFailed: (error: TokenError) => void;
}

/**
 * Brings the newest token to one sink, for as long as it takes.
 *
 * | state      | what happens             | next                                                     |
 * |------------|--------------------------|----------------------------------------------------------|
 * | idle       | a token                  | delivering                                               |
 * | delivering | done                     | idle, or delivering again if a newer token came meanwhile |
 * |            | failed                   | retrying                                                 |
 * |            | no answer in time        | overdue; its signal is aborted                           |
 * | overdue    | done, failed             | as from delivering                                       |
 * | retrying   | time is up, newer token  | delivering                                               |
 * | any        | close                    | its signal is aborted; nothing more is delivered         |
 */
export class TokenDelivery {
  /** As shown in `status()`. */
  readonly name: string;
  readonly #sink: TokenSink;
  readonly #options: TokenDeliveryOptions;
  readonly #controller = new AbortController();
  #state: TokenSinkStatus['state'] = 'idle';
  #wanted: ServiceAccountToken | undefined;
  #work: Promise<void> | undefined;
  #attempt: Promise<boolean> | undefined;
  #endPause: (() => void) | undefined;
  #failures = 0;
  #lastDeliveryAt: number | undefined;
  #lastError: string | undefined;

  constructor(sink: TokenSink, options: TokenDeliveryOptions) {
    this.name = sink.name || 'sink';
    this.#sink = sink;
    this.#options = options;
  }

  /** Delivers the token now, or after the call that is running. */
  deliver(token: ServiceAccountToken): void {
    if (this.#controller.signal.aborted) return;
    this.#wanted = token;
    this.#endPause?.();
    this.#work ??= this.#deliverAll();
  }

  /** Resolves when no call is running that may still be in time. */
  async idle(): Promise<void> {
    while (this.#attempt) await this.#attempt;
  }

  /** Resolves when the call that is running has ended, or after 5 s. */
  async close(): Promise<void> {
    this.#wanted = undefined;
    this.#controller.abort(new ClosedError('The token refresher was closed'));
    this.#endPause?.();
    if (!this.#work) return;
    const quietPeriod = new AbortController();
    const over = sleep(this.#options.clock, SHUTDOWN_GRACE_MS, { signal: quietPeriod.signal });
    await Promise.race([this.#work.then(() => quietPeriod.abort()), over.catch(() => {})]);
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

  async #deliverAll(): Promise<void> {
    while (this.#wanted) {
      const token = this.#wanted;
      await this.#deliverOnce(token);
      if (this.#wanted === token) await this.#pause();
    }
    this.#state = 'idle';
    this.#work = undefined;
  }

  async #deliverOnce(token: ServiceAccountToken): Promise<void> {
    const { clock, timeoutMs } = this.#options;
    let call = Promise.resolve();
    const callSink = (signal: AbortSignal): Promise<void> => {
      call = (async () => this.#sink(token, { signal }))();
      return call;
    };
    const inTime = withDeadline(callSink, {
      clock,
      timeoutMs,
      signal: this.#controller.signal,
      late: () => new TokenError('ERR_TOKEN_TIMEOUT', `no answer within ${timeoutMs} ms`),
    });
    this.#state = 'delivering';
    this.#attempt = inTime.then(
      () => this.#delivered(token),
      (error: unknown) => this.#failed(error),
    );
    const isDone = await this.#attempt;
    this.#attempt = undefined;
    if (isDone) return;
    // It may have been given up and still run; a second call beside it could be overtaken by it.
    this.#state = 'overdue';
    await call.then(
      () => void this.#delivered(token),
      () => {}, // Told already.
    );
  }

  #delivered(token: ServiceAccountToken): true {
    const { backoff, clock, onDelivered } = this.#options;
    if (this.#wanted === token) this.#wanted = undefined;
    this.#failures = 0;
    this.#lastError = undefined;
    this.#lastDeliveryAt = clock.now();
    backoff.reset();
    onDelivered(token);
    return true;
  }

  #failed(cause: unknown): false {
    if (this.#controller.signal.aborted) return false;
    const shown = withoutTokens(cause);
    const reason = shown instanceof Error ? shown.message : describe(shown);
    const error = new TokenError('ERR_TOKEN_SINK', `Cannot deliver the token to "${this.name}": ${reason}`, {
      cause: shown,
    });
    this.#failures += 1;
    this.#lastError = error.message;
    this.#options.onFailed(error);
    return false;
  }

  /** Waits before the next attempt; a newer token or the end cuts it short. */
  async #pause(): Promise<void> {
    const { clock, backoff, ref } = this.#options;
    this.#state = 'retrying';
    await new Promise<void>((resolve) => {
      const timer = clock.schedule(resolve, backoff.next(), { ref });
      this.#endPause = () => {
        timer.cancel();
        resolve();
      };
    });
    this.#endPause = undefined;
  }
}
