/**
 * Callbacks on an `AbortSignal`, through one listener for each signal: a signal that a whole application shares would
 * otherwise warn of a leak at the eleventh.
 */
const callbacks = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls `callback` once when the signal aborts; at once if it has. Returns what removes it. The last one removed
 * takes the listener with it.
 */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void {
  if (!signal) return () => undefined;
  if (signal.aborted) {
    callback();
    return () => undefined;
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

function onSignal(this: AbortSignal): void {
  const waiting = callbacks.get(this);
  callbacks.delete(this);
  for (const callback of waiting ?? []) callback();
}
