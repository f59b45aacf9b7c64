import { dateOrNull } from '../core/ports/clock.js';
import { asPart, Component } from '../core/lifecycle/component.js';
import { holdProcess } from '../core/scheduling/event-loop.js';
import { withDeadline } from '../core/scheduling/deadline.js';
import { ClosedError, ListenerError } from '../core/errors/errors.js';
import { TokenError } from '../core/errors/token-error.js';
import { TokenCredential } from '../core/ports/token-client.js';
import type { ValueSource } from '../core/ports/value-source.js';
import { Alarm } from '../core/scheduling/alarm.js';
import { TokenDelivery } from './delivery.js';
import type { TokenLease } from './lease.js';
import { mintToken } from './mint.js';
import { NextAttempt } from './next-attempt.js';
import { markHandled, NextOutcome } from '../core/scheduling/outcome.js';
import { AttemptRecord } from './attempt-record.js';
import {
  resolveRefresherOptions,
  scheduleOf,
  type ResolvedRefresherOptions,
  type TokenRefresherOptions,
} from './refresher-options.js';
import {
  refresherDescription,
  type TokenRefresherEvents,
  type TokenRefresherStatus,
  type TokenWakeReason,
} from './refresher-status.js';
import { planRefresh, tokenSchedules } from './schedule.js';
import { TokenFile, type TokenFileEvents } from './token-file.js';
import { DATE_LEEWAY_MS, type ServiceAccountToken } from './token.js';

/**
 * Keeps a ServiceAccount token valid and delivers it to its users. The timer, a changed token file, a clock jump, a
 * reported 401 and `refresh()` are all hints that lead to the same decision: when to request the next token.
 *
 * | state             | what happens                          | next                                            |
 * |-------------------|---------------------------------------|-------------------------------------------------|
 * | idle              | `start()`                             | starting: watch the token file, then refreshing |
 * | starting          | the file is watched, or cannot be     | refreshing                                      |
 * | refreshing        | a valid token                         | waiting, by the schedule; deliver it            |
 * |                   | an error, an invalid token, a timeout | retrying, with backoff; keep the current one    |
 * |                   | the client cannot work                | failed; keep the current one; `start()` rejects |
 * |                   | the file changes                      | as above, and then refreshing again             |
 * |                   | `refresh()`, a 401 is reported        | the attempt in progress answers it              |
 * | waiting, retrying | its time has come                     | refreshing                                      |
 * |                   | file, 401, `refresh()`, clock jump    | the same, but sooner (next-attempt.ts)          |
 * | failed            | file, 401, `refresh()`                | failed: `refresh()` rejects                     |
 * | any               | the token is due while attempts fail  | the same; `warning`                             |
 * |                   | the token expires while attempts fail | the same; `expired`                             |
 * |                   | `close()`                             | closed                                          |
 *
 * Attempts never overlap. They begin at least `minIntervalMs` apart, and never before a `Retry-After` is over.
 */
export class TokenRefresher
  extends Component<TokenRefresherEvents, TokenRefresherStatus>
  implements ValueSource<ServiceAccountToken>
{
  readonly #options: ResolvedRefresherOptions;
  readonly #record: AttemptRecord;
  readonly #deliveries: readonly TokenDelivery[];
  readonly #tokenFile: TokenFile | undefined;
  readonly #next: NextAttempt;
  /** Set while attempts fail, to report when the current token is due, and when it expires. */
  readonly #expiry: Alarm;

  /** The state while the component is running. */
  #phase: 'refreshing' | 'waiting' | 'retrying' | 'failed' = 'refreshing';
  #lease: TokenLease | undefined;
  readonly #outcome = new NextOutcome<ServiceAccountToken>();
  #attempting: Promise<void> | undefined;
  #refused: ServiceAccountToken | undefined;
  #starting: Promise<void> | undefined;
  #started: Promise<void> | undefined;

  /**
   * Does no I/O.
   * @throws {TypeError | RangeError} for a wrong option.
   */
  constructor(options: TokenRefresherOptions) {
    const resolved = resolveRefresherOptions(options);
    const { name, clock, signal } = resolved;
    super({ kind: 'TokenRefresher', name, signal, clock, description: refresherDescription });
    this.#options = resolved;
    this.#record = new AttemptRecord(resolved.unhealthyAfter);
    this.#next = new NextAttempt({
      ...resolved,
      begin: () => this.#attempt(),
      onJump: () => this.#onJump(),
    });
    this.#expiry = new Alarm(clock, false, () => this.#onExpiry());
    const delivering = {
      ...resolved,
      traced: (sink: string, deliver: () => Promise<void>) =>
        this.trace('token.delivery', { sink }, deliver, () => 'delivered'),
      onDelivered: (sink: string, token: ServiceAccountToken) => {
        this.#record.recorded.lastDeliveryAt = clock.now();
        this.dispatch('delivered', { sink, token });
      },
      onFailed: (sink: string, error: TokenError) => this.dispatch('undelivered', { sink, error }),
    };
    this.#deliveries = resolved.sinks.map((sink) => new TokenDelivery(sink, delivering));
    this.#tokenFile = this.#watchedTokenFile();
  }

  override get state(): TokenRefresherStatus['state'] {
    const { lifecycleState } = this;
    return lifecycleState === 'running' ? this.#phase : lifecycleState;
  }

  protected override get purpose(): string {
    return 'refresh the token';
  }

  protected override get secrets(): readonly string[] {
    return this.#lease ? [this.#lease.token.value] : [];
  }

  /** The last good token, which may have expired; undefined before the first one. */
  get current(): ServiceAccountToken | undefined {
    return this.#lease?.token;
  }

  /**
   * Watches the token file and makes the first attempt. Resolves when the attempt and the first call of each sink have
   * ended, even if they failed; `get()` shows whether there is a token. A second call returns the same promise.
   * @throws {TokenError} (rejects) `ERR_TOKEN_CLIENT` when the client cannot work, as outside a pod: no attempt
   * follows.
   * @throws {ClosedError} (rejects) after `close()`; the signal's reason when that has aborted.
   */
  override start(): Promise<void> {
    const started = super.start();
    if (started !== this.#starting) {
      this.#starting = started;
      this.#started = markHandled(started.then(() => this.#throwIfFailed()));
    }
    return this.#started ?? started;
  }

  /**
   * Resolves to the current token, immediately if the server accepts it. Otherwise waits for the attempt in progress.
   * @throws {TokenError} `ERR_TOKEN_EXPIRED`, or `ERR_TOKEN_UNAVAILABLE` if there has been none yet; `cause` says why.
   * @throws {ClosedError} after `close()`; the signal's reason when that has aborted.
   */
  async get(): Promise<ServiceAccountToken> {
    this.throwIfClosed();
    if (this.#lease && this.#lease.acceptedMs() > 0) return this.#lease.token;
    if (this.lifecycleState === 'idle') throw notStarted();
    if (this.#phase === 'retrying' || this.#phase === 'failed') throw this.#noToken(this.#record.error);
    // The token expired while the system was suspended, and the timer has not noticed it yet.
    this.#next.hint('clock');
    return this.#nextOutcome().catch((error: unknown) => {
      throw error instanceof ClosedError ? error : this.#noToken(error);
    });
  }

  /**
   * Requests a new token, or joins the attempt in progress. Rejects when that attempt fails; retries follow
   * automatically, so the promise may be ignored.
   */
  refresh(): Promise<ServiceAccountToken> {
    this.#next.hint('refresh');
    return this.#nextOutcome();
  }

  /**
   * Reports that a server refused this token (401), and resolves to the token to use instead. A new one is requested
   * only if this token is still the current one. The promise may be ignored.
   */
  reportUnauthorized(token: ServiceAccountToken): Promise<ServiceAccountToken> {
    const current = this.#lease?.token;
    if (!current?.equals(token)) return markHandled(this.get());
    if (this.#refused !== current) {
      this.#refused = current;
      this.#next.hint('unauthorized');
    }
    return this.#nextOutcome();
  }

  /** Resolves when no attempt is in progress and no sink is being called. */
  async idle(): Promise<void> {
    while (this.#attempting) await this.#attempting;
    await Promise.all(this.#deliveries.map((delivery) => delivery.idle()));
  }

  status(): TokenRefresherStatus {
    const token = this.#lease?.token;
    const expired = this.#lease !== undefined && this.#lease.acceptedMs() <= 0;
    return {
      name: this.name,
      state: this.state,
      lastError: this.lastError,
      healthy: this.#record.healthy && !expired,
      issuedAt: token?.issuedAt ?? null,
      expiresAt: dateOrNull(token?.expiresAt),
      expired,
      nextRefreshAt: this.#next.at ?? null,
      ...this.#record.recorded,
      watching: this.#tokenFile?.state === 'running' && this.#tokenFile.status().watcher === 'watching',
      sinks: this.#deliveries.map((delivery) => delivery.status()),
    };
  }

  /**
   * Closes the refresher. Work in progress is aborted and awaited; a sink that ignores its signal is awaited for at
   * most 5 s. Never rejects; a second call returns the same promise. Must not be awaited in a sink.
   */
  override close(): Promise<void> {
    return super.close();
  }

  protected override async onStart(): Promise<void> {
    if (this.#tokenFile) await this.#startInTime(this.#tokenFile);
  }

  protected override onRunning(): Promise<void> {
    this.#attempt();
    return this.idle();
  }

  protected override async onClose(): Promise<void> {
    this.#next.clear();
    this.#expiry.clear();
    this.#outcome.reject(this.lifetime.signal.reason as Error);
    await Promise.all([this.#tokenFile?.close(), ...this.#deliveries.map((delivery) => delivery.close())]);
  }

  #throwIfFailed(): void {
    const { error } = this.#record;
    if (this.#phase === 'failed' && error) throw error;
  }

  #onJump(): void {
    // By the new time, the token is not valid yet: our clock or the server's was wrong at issue time.
    const ahead = (this.#lease?.token.aheadMs(this.#options.clock.now()) ?? 0) > DATE_LEEWAY_MS;
    if (ahead) this.#next.hint('clock');
    else this.#next.jumped();
  }

  #attempt(): void {
    this.#phase = 'refreshing';
    const reason = this.#next.began();
    const { recorded } = this.#record;
    recorded.lastWakeReason = reason;
    recorded.lastAttemptAt = this.#options.clock.now();
    const credential = this.#credential;
    const request = this.trace(
      'token.request',
      { reason },
      () => mintToken(this.#options, { current: this.#lease, credential, signal: this.lifetime.signal }),
      (lease) => (lease === this.#lease ? 'unchanged' : 'issued'),
    );
    const attempt = request.then(
      (lease) => this.#succeeded(lease, reason),
      (error: unknown) => this.#failed(error as TokenError),
    );
    this.#attempting = this.lifetime.track(attempt);
  }

  #succeeded(lease: TokenLease, reason: TokenWakeReason): void {
    this.#attempting = undefined;
    if (this.state === 'closed') return;
    const now = this.#options.clock.now();
    const { token } = lease;
    const aheadMs = token.aheadMs(now);
    const isNew = lease !== this.#lease;

    this.#phase = 'waiting';
    this.#lease = lease;
    this.#expiry.clear();
    const { recovered, skewed } = this.#record.succeeded(now, aheadMs);
    this.#refused = undefined;
    const delayMs = this.#scheduled(lease);
    if (isNew) for (const delivery of this.#deliveries) delivery.deliver(token);
    // The schedule or a sink may have closed it.
    if (this.lifetime.ended) return;
    this.#next.succeeded(delayMs);

    this.#outcome.resolve(token);
    if (isNew) this.dispatch('token', { token, reason });
    if (skewed) this.dispatch('skew', { aheadMs, token });
    if (recovered) this.dispatch('healthy');
    if (lease.remainingMs() <= 0) this.#onExpiry();
  }

  #failed(error: TokenError): void {
    this.#attempting = undefined;
    if (this.state === 'closed') return;
    const isFatal = error.code === 'ERR_TOKEN_CLIENT';
    const unhealthy = this.#record.failed(error, isFatal);
    this.#phase = isFatal ? 'failed' : 'retrying';
    if (!isFatal) this.#next.failed(error);
    if (this.#lease) this.#expiry.set(Math.max(0, this.#lease.remainingMs()));

    this.#outcome.reject(error);
    const { consecutiveFailures } = this.#record.recorded;
    if (isFatal) this.fail(error);
    else {
      this.recordError(error);
      this.dispatch('retry', { error, consecutiveFailures, delayMs: this.#next.remainingMs });
    }
    if (unhealthy) this.dispatch('unhealthy', { error, consecutiveFailures });
  }

  #scheduled(lease: TokenLease): number {
    const { clock, leewayMs, random } = this.#options;
    const bounds = { now: clock.now(), leewayMs, random };
    try {
      return planRefresh(scheduleOf(this.#options), lease, bounds);
    } catch (error) {
      this.fail(new ListenerError('schedule', error, [lease.token.value]));
      return planRefresh(tokenSchedules.quarter, lease, bounds);
    }
  }

  #onExpiry(): void {
    if (!this.#lease) return;
    const { due, warning, expired, unhealthy } = this.#record.ended(this.#lease);
    if (due !== undefined) this.#expiry.set(due);
    if (warning) this.dispatch('warning', warning);
    if (expired) this.dispatch('expired', expired);
    if (unhealthy) this.dispatch('unhealthy', unhealthy);
  }

  #noToken(cause: unknown): TokenError {
    const token = this.#lease?.token;
    return token
      ? new TokenError('ERR_TOKEN_EXPIRED', `There is no newer token than ${String(token)}`, { cause })
      : new TokenError('ERR_TOKEN_UNAVAILABLE', 'There is no token yet', { cause });
  }

  /**
   * Settles with the attempt in progress, or else with the next one; until then it keeps the process alive. It may be
   * ignored.
   */
  #nextOutcome(): Promise<ServiceAccountToken> {
    try {
      this.throwIfClosed();
      if (this.lifecycleState === 'idle') throw notStarted();
      if (this.#phase === 'failed') throw this.#noToken(this.#record.error);
    } catch (error) {
      return markHandled(Promise.reject(error as Error));
    }
    return markHandled(this.#outcome.promise.finally(holdProcess()));
  }

  /** The newest projected token. */
  get #credential(): TokenCredential | undefined {
    const file = this.#tokenFile;
    if (!file?.current) return undefined;
    const seenAt = file.status().lastChangeAt ?? this.#options.clock.now();
    return new TokenCredential({ value: file.current.value, path: file.path, seenAt });
  }

  /** Undefined without a token file. The dates of its token do not matter here. */
  #watchedTokenFile(): TokenFile | undefined {
    const { tokenFile, tokenFileOptions, name, clock, fs, random, persistent } = this.#options;
    if (tokenFile === false) return undefined;
    const options = { ...tokenFileOptions, format: 'opaque', name, clock, fs, random, persistent } as const;
    const file = new TokenFile(tokenFile, options);
    file.on('change', () => {
      // The first attempt uses the token that exists at the start.
      if (this.lifecycleState === 'running') this.#next.hint('file');
    });
    // Without this token a client uses its own credentials, and if they are refused, `retry` says so.
    file.on('rejected', () => {});
    asPart<TokenFileEvents>(file, {
      unreadable: (event) => this.dispatch('unreadable', event),
      readable: (event) => this.dispatch('readable', event),
      degraded: (event) => this.dispatch('degraded', event),
      recovered: (event) => this.dispatch('recovered', event),
      warning: (event) => this.dispatch('warning', event),
    });
    return file;
  }

  /** Waits at most `attemptTimeoutMs`, so that tokens are refreshed even while the file system hangs. */
  async #startInTime(file: TokenFile): Promise<void> {
    const { clock, attemptTimeoutMs: timeoutMs } = this.#options;
    const begun = clock.monotonic();
    const message = `Cannot read the token file ${file.path}: no answer within ${timeoutMs} ms`;
    const late = new TokenError('ERR_TOKEN_FILE', message);
    const { signal } = this.lifetime;
    await withDeadline(() => file.start(), { clock, timeoutMs, signal, late: () => late }).catch(() => {
      this.dispatch('unreadable', { error: late });
      const answered = (): void => {
        if (file.status().rejected?.name === 'TargetError') return;
        this.dispatch('readable', { unreadableMs: clock.monotonic() - begun });
      };
      file.start().then(answered, () => {});
    });
  }
}

function notStarted(): TokenError {
  return new TokenError('ERR_TOKEN_UNAVAILABLE', 'There is no token yet: call start() first');
}
