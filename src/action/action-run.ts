import type { Clock } from '../core/clock.js';
import { ActionError } from './action-error.js';
import { Outcome } from '../core/outcome.js';
import { redactError } from '../core/resilient-error.js';
import type { Action } from './action.js';
import type { ActionUpdate } from './action-update.js';

/** How long a run may take, ms. */
interface RunLimits {
  readonly timeoutMs: number;
  readonly stopTimeoutMs: number;
  readonly clock: Clock;
}

/**
 * One run of an action, which is stopped when it takes too long or is interrupted.
 *
 * | state                  | it fulfills   | it rejects            | its time is up | `interrupt()`   | it does not stop in time |
 * |------------------------|---------------|-----------------------|----------------|-----------------|--------------------------|
 * | running                | `succeeded`   | throws what it threw  | → late         | → interrupted   | –                        |
 * | late, asked to stop    | `succeeded`   | throws a timeout      | –              | –               | throws a timeout         |
 * | interrupted, the same  | `interrupted` | `interrupted`         | –              | –               | `interrupted`            |
 */
export class ActionRun {
  readonly #action: Action;
  readonly #limits: RunLimits;
  readonly #controller = new AbortController();
  readonly #unstoppable = new Outcome<never>();
  /** Why it was asked to stop. */
  #stopped: 'late' | 'interrupted' | undefined;
  #isOver = false;
  #timer: ReturnType<Clock['schedule']>;

  constructor(action: Action, limits: RunLimits) {
    this.#action = action;
    this.#limits = limits;
    this.#timer = limits.clock.schedule(() => this.#stop('late'), limits.timeoutMs);
  }

  /** @throws {ActionError} (rejects) when the action failed or took too long. */
  async run(update: ActionUpdate): Promise<'succeeded' | 'interrupted'> {
    try {
      const { signal } = this.#controller;
      await Promise.race([this.#action.run(update, { signal }), this.#unstoppable.promise]);
      return this.#stopped === 'interrupted' ? 'interrupted' : 'succeeded';
    } catch (cause) {
      if (this.#stopped === 'interrupted') return 'interrupted';
      throw this.#stopped === 'late' ? this.#timeout() : this.#failure(cause);
    } finally {
      this.#isOver = true;
      this.#timer.cancel();
    }
  }

  /** Stops the run, because of a newer update or `close()`. Has no effect once the run has ended. */
  interrupt(): void {
    this.#stop('interrupted');
  }

  #stop(reason: 'late' | 'interrupted'): void {
    if (this.#stopped || this.#isOver) return;
    this.#stopped = reason;
    this.#timer.cancel();
    const { clock, stopTimeoutMs } = this.#limits;
    this.#timer = clock.schedule(
      () => this.#unstoppable.reject(new Error('it does not stop')),
      stopTimeoutMs,
    );
    this.#controller.abort();
  }

  #timeout(): ActionError {
    const reason = `it took longer than ${this.#limits.timeoutMs} ms and was stopped`;
    return new ActionError('ERR_ACTION_TIMEOUT', `Action ${this.#action.name} failed: ${reason}`);
  }

  #failure(thrown: unknown): ActionError {
    if (thrown instanceof ActionError) return thrown;
    const cause = redactError(thrown);
    const message = `Action ${this.#action.name} failed: ${cause.message}`;
    return new ActionError('ERR_ACTION_FAILED', message, { cause });
  }
}
