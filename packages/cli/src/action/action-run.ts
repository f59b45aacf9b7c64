import type { Clock } from 'resilient-watcher';
import { onAbort, Outcome, redactError } from 'resilient-watcher/internal';

import { type Action, ActionError, actionFailed } from './action.js';
import type { ActionUpdate } from './action-update.js';

/** How long a run may take, ms. */
interface RunLimits {
  readonly timeoutMs: number;
  /** Called when that is over. */
  readonly onLate: (error: ActionError) => void;
  readonly stopTimeoutMs: number;
  readonly clock: Clock;
}

/**
 * Runs an action once. It is asked to stop when it takes too long or is interrupted, and abandoned when it does not.
 *
 * | state                  | it fulfills   | it rejects            | its time is up | interrupted   | it does not stop in time |
 * |------------------------|---------------|-----------------------|----------------|---------------|--------------------------|
 * | running                | `succeeded`   | throws what it threw  | → late         | → interrupted | –                        |
 * | late, asked to stop    | `succeeded`   | throws a timeout      | –              | –             | throws a timeout         |
 * | interrupted, the same  | `interrupted` | `interrupted`         | –              | –             | `interrupted`            |
 * @param interrupted aborts at `close()`.
 * @throws {ActionError} (rejects) when the action failed or took too long.
 */
export async function runAction(
  action: Action,
  update: ActionUpdate,
  { timeoutMs, onLate, stopTimeoutMs, clock }: RunLimits,
  interrupted: AbortSignal,
): Promise<'succeeded' | 'interrupted'> {
  const stopping = new AbortController();
  const { signal } = stopping;
  const unstoppable = new Outcome<never>();
  const stop = (reason: Error): void => {
    if (signal.aborted) return;
    timer.cancel();
    timer = clock.schedule(() => unstoppable.reject(new Error('it does not stop')), stopTimeoutMs);
    stopping.abort(reason);
  };
  const late = (): void => {
    const error = timeoutOf(action, timeoutMs);
    stop(error);
    onLate(error);
  };
  let timer = clock.schedule(late, timeoutMs);
  const forget = onAbort(interrupted, () => stop(interrupted.reason as Error));
  try {
    await Promise.race([action.run(update, { signal }), unstoppable.promise]);
  } catch (cause) {
    if (!signal.aborted) throw failureOf(action, cause);
    if (signal.reason instanceof ActionError) throw signal.reason;
  } finally {
    timer.cancel();
    forget();
  }
  const isLate = signal.reason instanceof ActionError;
  return signal.aborted && !isLate ? 'interrupted' : 'succeeded';
}

function timeoutOf({ name }: Action, timeoutMs: number): ActionError {
  const reason = `it took longer than ${timeoutMs} ms and was stopped`;
  return actionFailed(name, reason, undefined, 'ERR_ACTION_TIMEOUT');
}

function failureOf({ name }: Action, thrown: unknown): ActionError {
  if (thrown instanceof ActionError) return thrown;
  const cause = redactError(thrown);
  return actionFailed(name, cause.message, cause);
}
