import { onAbort } from './abort.js';
import type { Clock } from '../ports/clock.js';

/**
 * Runs `work` until `timeoutMs` have passed or `signal` aborts. Then the signal passed to the work aborts, and the
 * promise rejects immediately, whether or not the work reacts. Leaves no timer and no listener.
 * @param late creates the error for a timeout.
 * @param ref whether waiting keeps the process alive. Default true.
 */
export async function withDeadline<T>(
  work: (signal: AbortSignal) => T | Promise<T>,
  options: { clock: Clock; timeoutMs: number; signal?: AbortSignal; late: () => Error; ref?: boolean },
): Promise<T> {
  const { clock, timeoutMs, signal, late, ref = true } = options;
  signal?.throwIfAborted();
  const controller = new AbortController();
  let giveUp!: (reason: Error) => void;
  const givenUp = new Promise<never>((_, reject) => {
    giveUp = (reason) => {
      reject(reason);
      controller.abort(reason);
    };
  });
  const timer = clock.schedule(() => giveUp(late()), timeoutMs, { ref });
  const forget = onAbort(signal, () => giveUp(signal?.reason as Error));
  // Also what throws at once is raced, because it may have ended the signal.
  const answer = new Promise<T>((settle) => settle(work(controller.signal)));
  try {
    return await Promise.race([answer, givenUp]);
  } finally {
    timer.cancel();
    forget();
  }
}

/** Waits for the work, at most `timeoutMs`; then the signal passed to it aborts. How it ends does not matter. */
export async function waitAtMost(
  work: (signal: AbortSignal) => unknown,
  options: { clock: Clock; timeoutMs: number; ref?: boolean },
): Promise<void> {
  const late = (): Error => new Error('it did not end in time');
  await withDeadline(work, { ...options, late }).catch(() => {});
}
