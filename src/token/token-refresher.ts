import { Backoff } from '../core/backoff.js';
import { ClosedError, TokenError } from '../core/errors.js';
import { Emitter } from '../core/emitter.js';
import { Lifecycle } from '../core/lifecycle.js';
import { Alarm } from './alarm.js';
import { TokenDelivery, type TokenSink } from './delivery.js';
import type { TokenLease } from './lease.js';
import { TokenMint } from './mint.js';
import { NextAttempt } from './next-attempt.js';
import { markHandled, Outcome } from '../core/outcome.js';
import { RefresherRecord } from './record.js';
import {
  resolveRefresherOptions,
  scheduleOf,
  type ResolvedRefresherOptions,
  type TokenRefresherOptions,
} from './refresher-options.js';
import type { TokenRefresherEvents, TokenRefresherStatus, TokenWakeReason } from './refresher-status.js';
import { planRefresh, tokenSchedules } from './schedule.js';
import { TokenWatch } from './token-watch.js';
import { DATE_LEEWAY_MS, type ServiceAccountToken } from './token.js';

/** A server that names a longer time is overloaded or mistaken; a token may be needed sooner. */
const LONGEST_RETRY_AFTER_MS = 5 * 60_000;

/**
 * Keeps a ServiceAccount token good and brings it to where it is used. Everything that happens is a hint that
 * ends in the same question: ask for a token now, or when?
 *
 * | state              | what happens                     | next                                                |
 * |--------------------|----------------------------------|-----------------------------------------------------|
 * | idle               | `start()`                        | refreshing                                          |
 * | refreshing         | a good token                     | waiting, by the schedule; deliver it                |
 * |                    | none, or a bad one, or too late  | retrying, with backoff; keep the current one        |
 * |                    | file or clock changed            | as above, and once more as soon as may be           |
 * |                    | `refresh()`, a 401 reported      | the attempt under way answers it                    |
 * | waiting, retrying  | its time has come                | refreshing                                          |
 * |                    | file, 401, `refresh()`, clock    | the same; its time comes sooner                     |
 * | any                | `close()`                        | closed                                              |
 *
 * Two attempts never overlap and begin at least `minIntervalMs` apart, and not before a `Retry-After` is over.
 */
export class TokenRefresher extends Emitter<TokenRefresherEvents> {
  readonly #options: ResolvedRefresherOptions;
  readonly #lifecycle: Lifecycle;
  readonly #retries: Backoff;
  /** For tokens refused as soon as they were made, which asking faster does not help. */
  readonly #refusals: Backoff;
  readonly #mint: TokenMint;
  readonly #record: RefresherRecord;
  readonly #deliveries: readonly TokenDelivery[];
  readonly #watch: TokenWatch | undefined;
  readonly #next: NextAttempt;
  /** Set while attempts fail, to tell of the end of the current token when it comes. */
  readonly #expiry: Alarm;

  #state: TokenRefresherStatus['state'] = 'idle';
  #lease: TokenLease | undefined;
  /** During an attempt, which then may not have known of it. */
  #fileChanged = false;
  /** How the attempt under way, or the next one, ends. */
  #outcome: Outcome<ServiceAccountToken> | undefined;
  #attempting: Promise<void> | undefined;
  #refused: ServiceAccountToken | undefined;

  /**
   * Does nothing yet.
   * @throws {TypeError} {RangeError} for a wrong option.
   */
  constructor(options: TokenRefresherOptions) {
    super();
    this.#options = resolveRefresherOptions(options);
    const { clock, persistent, retryDelayMs, maxRetryDelayMs, random, signal } = this.#options;
    const backoff = (): Backoff =>
      new Backoff({ firstDelayMs: retryDelayMs, maxDelayMs: maxRetryDelayMs, random });
    this.#mint = new TokenMint(this.#options);
    this.#record = new RefresherRecord(this.#options.unhealthyAfter);
    this.#retries = backoff();
    this.#refusals = backoff();
    this.#next = new NextAttempt(
      clock,
      persistent,
      () => this.#attempt(),
      () => this.#onJump(),
    );
    this.#expiry = new Alarm(clock, false, () => this.#onExpiry());
    this.#deliveries = this.#options.sinks.map((sink) => this.#deliveryTo(sink, backoff()));
    this.#watch = this.#watchOf(backoff());
    this.#lifecycle = new Lifecycle({
      signal,
      open: async () => this.#watch?.start(),
      run: () => {
        this.#attempt();
        return this.idle();
      },
      end: () => this.#end(),
      over: () => new ClosedError('The token refresher was closed'),
    });
  }

  /**
   * Watches the token file, makes the first attempt, and resolves when that and the first call of each sink have
   * ended, well or not: `token()` tells. A second call returns the same promise.
   * @throws {ClosedError} once closed.
   */
  start(): Promise<void> {
    return markHandled(this.#lifecycle.start());
  }

  /**
   * The current token, at once. Waits only for the attempt under way, when there is no good token without it.
   * @throws {TokenError} `ERR_TOKEN_EXPIRED` or `ERR_TOKEN_UNAVAILABLE` (never had one); `cause` is why.
   * @throws {ClosedError} once closed.
   */
  async token(): Promise<ServiceAccountToken> {
    this.#lifecycle.throwIfClosed();
    if (this.#lease && this.#lease.remainingMs() > 0) return this.#lease.token;
    if (this.#lifecycle.state === 'idle')
      throw new TokenError('ERR_TOKEN_UNAVAILABLE', 'There is no token yet: call start() first');
    if (this.#state === 'retrying') throw this.#noToken(this.#record.error);
    // It ended while the machine slept, and nobody has noticed yet.
    this.#wake('clock');
    return this.#nextOutcome().catch((error: unknown) => {
      throw error instanceof ClosedError ? error : this.#noToken(error);
    });
  }

  /**
   * Asks for a new token, or joins the attempt under way. Rejects when that attempt fails; more follow by
   * themselves, so the promise may be ignored.
   */
  refresh(): Promise<ServiceAccountToken> {
    this.#wake('refresh');
    return this.#nextOutcome();
  }

  /**
   * Says that a server refused this token (401), and resolves to the one to use instead. Nothing is asked for if
   * the token is not the current one any more. The promise may be ignored.
   */
  reportUnauthorized(token: ServiceAccountToken): Promise<ServiceAccountToken> {
    const current = this.#lease?.token;
    if (!current?.equals(token)) return markHandled(this.token());
    if (this.#refused !== current) {
      this.#refused = current;
      this.#wake('unauthorized', this.#delayAfterRefusal());
    }
    return this.#nextOutcome();
  }

  /** Resolves when no attempt is under way and no sink is being called. */
  async idle(): Promise<void> {
    while (this.#attempting) await this.#attempting;
    await Promise.all(this.#deliveries.map((delivery) => delivery.idle()));
  }

  status(): TokenRefresherStatus {
    const token = this.#lease?.token;
    return {
      state: this.#lifecycle.state === 'closed' ? 'closed' : this.#state,
      healthy: this.#record.healthy && !(this.#lease && this.#lease.remainingMs() <= 0),
      issuedAt: token?.issuedAt,
      expiresAt: token?.expiresAt,
      nextRefreshAt: this.#next.at,
      ...this.#record.told(),
      watching: this.#watch?.watching ?? false,
      sinks: this.#deliveries.map((delivery) => delivery.status()),
    };
  }

  /**
   * Ends it: what is in flight is told to stop and awaited (a sink that does not listen for 5 s), a file that is
   * past its rename stays. Never rejects; a second call returns the same promise. Not to be awaited in a sink.
   */
  close(): Promise<void> {
    return this.#lifecycle.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #end(): Promise<void> {
    this.#state = 'closed';
    this.#next.clear();
    this.#expiry.clear();
    this.#takeOutcome()?.reject(this.#lifecycle.scope.signal.reason as Error);
    await Promise.all([this.#watch, ...this.#deliveries].map(async (part) => part?.close()));
  }

  // ------------------------------------------------------------------------------------------------- hints

  /** Brings the next attempt forward to `delayMs` from now, if it is not to come sooner. */
  #wake(reason: TokenWakeReason, delayMs = 0): void {
    if (this.#state === 'refreshing' && reason === 'file') this.#fileChanged = true;
    if (this.#state === 'waiting' || this.#state === 'retrying') this.#next.hasten(reason, delayMs);
  }

  #wakeForFile(): void {
    this.#wake('file', this.#options.random() * this.#options.wakeJitterMs);
  }

  #onJump(): void {
    // By the new time the token is not valid yet: it was dated by a clock that was wrong, ours or the server's.
    const ahead = (this.#lease?.token.aheadMs(this.#options.clock.now()) ?? 0) > DATE_LEEWAY_MS;
    if (ahead) this.#wake('clock');
    else this.#next.jumped();
  }

  #delayAfterRefusal(): number {
    const { random, wakeJitterMs } = this.#options;
    const again = this.#record.told().lastWakeReason === 'unauthorized';
    if (!again) this.#refusals.reset();
    return Math.max(random() * wakeJitterMs, again ? this.#refusals.next() : 0);
  }

  // ---------------------------------------------------------------------------------------------- attempts

  #attempt(): void {
    const { clock, minIntervalMs } = this.#options;
    this.#state = 'refreshing';
    this.#next.notBefore(minIntervalMs);
    this.#record.attempted(this.#next.reason, clock.now());
    const attempt = this.#mint.mint(this.#lease, this.#lifecycle.scope.signal).then(
      (lease) => this.#succeeded(lease),
      (error: unknown) => this.#failed(error as TokenError),
    );
    this.#attempting = this.#lifecycle.scope.track(attempt);
  }

  #succeeded(lease: TokenLease): void {
    this.#attempting = undefined;
    if (this.#lifecycle.state === 'closed') return;
    const now = this.#options.clock.now();
    const { token } = lease;
    const { reason } = this.#next;
    const aheadMs = token.aheadMs(now);
    const isNew = lease !== this.#lease;

    this.#lease = lease;
    this.#retries.reset();
    this.#expiry.clear();
    const { recovered, skewed } = this.#record.succeeded(now, aheadMs);
    if (isNew) for (const delivery of this.#deliveries) delivery.deliver(token);
    this.#plan('waiting', 'timer', this.#scheduled(lease));

    this.#takeOutcome()?.resolve(token);
    if (isNew) this.#tell('token', { token, reason });
    if (skewed) this.#tell('skew', { aheadMs, token });
    if (recovered) this.#tell('healthy');
  }

  #failed(error: TokenError): void {
    this.#attempting = undefined;
    if (this.#lifecycle.state === 'closed') return;
    const { clock } = this.#options;
    const unhealthy = this.#record.failed(error, clock.now());
    this.#next.notBefore(Math.min(error.retryAfterMs ?? 0, LONGEST_RETRY_AFTER_MS));
    this.#plan('retrying', 'retry', this.#retries.next());
    if (this.#lease) this.#expiry.set(Math.max(0, this.#lease.remainingMs()));

    this.#takeOutcome()?.reject(error);
    const { consecutiveFailures } = this.#record.told();
    this.#tell('retry', { error, consecutiveFailures, delayMs: this.#next.remainingMs });
    if (unhealthy) this.#tell('unhealthy', { error, consecutiveFailures });
  }

  #plan(state: 'waiting' | 'retrying', reason: TokenWakeReason, delayMs: number): void {
    this.#state = state;
    this.#next.plan(reason, delayMs);
    if (this.#fileChanged) this.#wakeForFile();
    this.#fileChanged = false;
  }

  #scheduled(lease: TokenLease): number {
    const { clock, leewayMs, random } = this.#options;
    const bounds = { now: clock.now(), remainingMs: lease.remainingMs(), leewayMs, random };
    try {
      return planRefresh(scheduleOf(this.#options), lease.token, bounds);
    } catch (error) {
      this.#tell('error', error instanceof Error ? error : new Error(String(error)));
      return planRefresh(tokenSchedules.quarter, lease.token, bounds);
    }
  }

  // ----------------------------------------------------------------------------------------------- telling

  #onExpiry(): void {
    const { error } = this.#record;
    if (!this.#lease || !error) return;
    const { first, unhealthy } = this.#record.expired();
    const { consecutiveFailures } = this.#record.told();
    if (first) this.#tell('expired', { token: this.#lease.token, error });
    if (unhealthy) this.#tell('unhealthy', { error, consecutiveFailures });
  }

  #noToken(cause: unknown): TokenError {
    const token = this.#lease?.token;
    return token
      ? new TokenError('ERR_TOKEN_EXPIRED', `There is no good token: ${String(token)} and no newer one`, {
          cause,
        })
      : new TokenError('ERR_TOKEN_UNAVAILABLE', 'There is no token yet', { cause });
  }

  /** Nothing is told after the end, not even by a step that began before it. */
  #tell<T extends keyof TokenRefresherEvents>(event: T, ...args: TokenRefresherEvents[T]): void {
    if (this.#lifecycle.state !== 'closed') this.emit(event, ...(args as never));
  }

  /** How the attempt under way ends, or else the next one. May be ignored. */
  #nextOutcome(): Promise<ServiceAccountToken> {
    try {
      this.#lifecycle.throwIfClosed();
      if (this.#lifecycle.state === 'idle')
        throw new TokenError('ERR_TOKEN_UNAVAILABLE', 'There is no token yet: call start() first');
    } catch (error) {
      return markHandled(Promise.reject(error as Error));
    }
    this.#outcome ??= new Outcome();
    return this.#outcome.promise;
  }

  #takeOutcome(): Outcome<ServiceAccountToken> | undefined {
    const outcome = this.#outcome;
    this.#outcome = undefined;
    return outcome;
  }

  // ------------------------------------------------------------------------------------------------- parts

  #deliveryTo(sink: TokenSink, backoff: Backoff): TokenDelivery {
    const { clock, sinkTimeoutMs: timeoutMs, persistent: ref } = this.#options;
    const delivery = new TokenDelivery(sink, {
      clock,
      backoff,
      timeoutMs,
      ref,
      onDelivered: (token) => {
        this.#record.delivered(clock.now());
        this.#tell('delivered', { sink: delivery.name, token });
      },
      onFailed: (error) => this.#tell('undelivered', { sink: delivery.name, error }),
    });
    return delivery;
  }

  #watchOf(backoff: Backoff): TokenWatch | undefined {
    const { tokenFile, attemptTimeoutMs, ...options } = this.#options;
    if (tokenFile === false) return undefined;
    return new TokenWatch({
      ...options,
      path: tokenFile,
      backoff,
      startTimeoutMs: attemptTimeoutMs,
      onText: (_text, initial) => {
        if (!initial) this.#wakeForFile();
      },
      onDegraded: (error) => this.#tell('degraded', { error }),
      onRecovered: () => this.#tell('recovered'),
    });
  }
}
