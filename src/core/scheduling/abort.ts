/**
 * Runs all callbacks on an `AbortSignal` through a single listener. With one listener each, Node.js warns of a leak
 * when an application shares its signal with eleven components.
 */
const callbacks = new WeakMap<AbortSignal, Set<() => void>>();

const NOTHING_TO_REMOVE = (): void => undefined;

/**
 * Calls `callback` once when the signal aborts; immediately if it already has. Returns a function that removes the
 * callback. When the last one is removed, so is the listener.
 */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void {
  if (!signal) return NOTHING_TO_REMOVE;
  if (signal.aborted) {
    callback();
    return NOTHING_TO_REMOVE;
  }
  let waiting = callbacks.get(signal);
  if (!waiting) {
    callbacks.set(signal, (waiting = new Set()));
    signal.addEventListener('abort', onSignal, { once: true });
  }
  const entry = (): void => callback();
  waiting.add(entry);
  return () => {
    const remaining = callbacks.get(signal);
    if (!remaining?.delete(entry) || remaining.size > 0) return;
    callbacks.delete(signal);
    signal.removeEventListener('abort', onSignal);
  };
}

/** Settles with the work, or rejects with the signal's reason as soon as it aborts. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const forget = onAbort(signal, () => reject(signal?.reason as Error));
    work.finally(forget).then(resolve, reject);
  });
}

function onSignal(this: AbortSignal): void {
  const waiting = callbacks.get(this);
  callbacks.delete(this);
  for (const callback of waiting ?? []) callback();
}
