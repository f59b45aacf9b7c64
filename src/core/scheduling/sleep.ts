import { onAbort } from './abort.js';
import type { Clock } from '../ports/clock.js';

/**
 * Resolves after `delayMs`; rejects with the signal's reason if it aborts first. Leaves no timer and no listener.
 */
export function sleep(
  clock: Clock,
  delayMs: number,
  { signal, ref = true }: { readonly signal?: AbortSignal; readonly ref?: boolean } = {},
): Promise<void> {
  if (signal?.aborted) return Promise.reject(signal.reason as Error);
  return new Promise((resolve, reject) => {
    const timer = clock.schedule(
      () => {
        forget();
        resolve();
      },
      delayMs,
      { ref },
    );
    const forget = onAbort(signal, () => {
      timer.cancel();
      reject(signal?.reason as Error);
    });
  });
}
