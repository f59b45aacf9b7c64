import type { Clock } from './clock.js';

/**
 * Resolves after `delayMs`; rejects with the signal's reason if it aborts first. Leaves no timer and no listener.
 */
export function sleep(
  clock: Clock,
  delayMs: number,
  { signal, ref = true }: { readonly signal?: AbortSignal; readonly ref?: boolean } = {},
): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason as Error);
      return;
    }
    const onAbort = (): void => {
      timer.cancel();
      reject(signal?.reason as Error);
    };
    const timer = clock.schedule(
      () => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      },
      delayMs,
      { ref },
    );
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
