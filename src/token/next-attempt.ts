import { Backoff, LONGEST_RETRY_AFTER_MS, type BackoffOptions } from '../core/scheduling/backoff.js';
import type { Clock } from '../core/ports/clock.js';
import { Alarm } from '../core/scheduling/alarm.js';
import type { TokenWakeReason } from './refresher-status.js';
import type { Random } from '../core/ports/random.js';
import { SOONEST_MS } from './schedule.js';

interface NextAttemptOptions {
  readonly retryDelays: BackoffOptions;
  readonly random: Random;
  readonly clock: Clock;
  /** Whether waiting keeps the process alive. */
  readonly persistent: boolean;
  readonly minIntervalMs: number;
  readonly wakeJitterMs: number;
  readonly begin: () => void;
  /** Called when the wall clock jumped, before the attempt begins. */
  readonly onJump: () => void;
}

/**
 * Decides when the next attempt begins, and why.
 *
 * | what happens      | while an attempt is planned            | during an attempt                       |
 * |-------------------|----------------------------------------|-----------------------------------------|
 * | it succeeded      | –                                      | the schedule plans the next one         |
 * | it failed         | –                                      | the backoff plans the next one, but not |
 * |                   |                                        | before `Retry-After` is over            |
 * | the file changed  | brought forward, within `wakeJitterMs` | the same, once the next one is planned  |
 * | 401               | the same; after a refresh due to a     | ignored                                 |
 * |                   | 401, not before a growing backoff      |                                         |
 * | `refresh()`       | brought forward to now                 | ignored                                 |
 * | clock jump        | the same, but at least 5 s after the   | ignored                                 |
 * |                   | last one began                         |                                         |
 *
 * An attempt is never postponed, and never begins within `minIntervalMs` of the previous one. If none is planned or in
 * progress, hints are ignored.
 */
export class NextAttempt {
  readonly #options: NextAttemptOptions;
  readonly #alarm: Alarm;
  readonly #retries: Backoff;
  /** The backoff for tokens that are refused as soon as they are issued: requesting more often does not help. */
  readonly #refusals: Backoff;
  #reason: TokenWakeReason = 'start';
  /** Why the attempt in progress, or the last one, began. */
  #begunFor: TokenWakeReason = 'start';
  /** Whether the token file changed during an attempt that may have begun too early to use the change. */
  #fileChanged = false;
  /** When the last attempt began, monotonic ms. */
  #begunAt = -Infinity;
  /** The earliest time of the next attempt, monotonic ms. */
  #earliest = -Infinity;

  constructor(options: NextAttemptOptions) {
    const { clock, persistent, retryDelays, onJump } = options;
    this.#options = options;
    this.#retries = new Backoff(retryDelays);
    this.#refusals = new Backoff(retryDelays);
    this.#alarm = new Alarm(clock, persistent, () => this.#onDue(), onJump);
  }

  /** Epoch ms; undefined while none is planned. */
  get at(): number | undefined {
    return this.#alarm.at;
  }

  get remainingMs(): number {
    return this.#alarm.remainingMs;
  }

  /** An attempt begins. Returns its reason. */
  began(): TokenWakeReason {
    this.#begunFor = this.#reason;
    this.#begunAt = this.#options.clock.monotonic();
    this.#fileChanged = false;
    this.#notBefore(this.#options.minIntervalMs);
    return this.#reason;
  }

  /** The attempt succeeded; by the schedule, the next one begins in `delayMs`. */
  succeeded(delayMs: number): void {
    this.#retries.reset();
    this.#plan('timer', delayMs);
  }

  failed({ retryAfterMs = 0 }: { readonly retryAfterMs?: number | undefined }): void {
    this.#notBefore(Math.min(retryAfterMs, LONGEST_RETRY_AFTER_MS));
    this.#plan('retry', this.#retries.next());
  }

  /** Brings the planned attempt forward. */
  hint(reason: 'file' | 'unauthorized' | 'refresh' | 'clock'): void {
    if (this.at === undefined) {
      if (reason === 'file') this.#fileChanged = true;
      return;
    }
    const isSooner = this.#alarm.bringForward(this.#bounded(this.#delayOf(reason)));
    if (isSooner) this.#reason = reason;
  }

  /** The wall clock has jumped, perhaps past the planned time. */
  jumped(): void {
    if (this.#alarm.remainingMs === 0) this.#reason = 'clock';
  }

  clear(): void {
    this.#alarm.clear();
  }

  #plan(reason: TokenWakeReason, delayMs: number): void {
    this.#reason = reason;
    this.#alarm.set(this.#bounded(delayMs));
    if (this.#fileChanged) this.hint('file');
  }

  #delayOf(reason: TokenWakeReason): number {
    const { random, wakeJitterMs } = this.#options;
    if (reason === 'file') return random() * wakeJitterMs;
    if (reason === 'clock') return this.#begunAt + SOONEST_MS - this.#options.clock.monotonic();
    if (reason !== 'unauthorized') return 0;
    const isRepeated = this.#begunFor === 'unauthorized';
    if (!isRepeated) this.#refusals.reset();
    return Math.max(random() * wakeJitterMs, isRepeated ? this.#refusals.next() : 0);
  }

  #onDue(): void {
    const earlyMs = this.#bounded(0);
    if (earlyMs > 0) this.#alarm.set(earlyMs);
    else this.#options.begin();
  }

  #notBefore(delayMs: number): void {
    this.#earliest = Math.max(this.#earliest, this.#options.clock.monotonic() + delayMs);
  }

  #bounded(delayMs: number): number {
    return Math.max(delayMs, this.#earliest - this.#options.clock.monotonic());
  }
}
