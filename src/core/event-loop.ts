/**
 * Turns of the event loop. The real functions are taken when the library is loaded, so that fake timers that a test
 * installs later do not stop work that waits for nothing.
 */
const { setImmediate: schedule, clearImmediate: cancel } = globalThis;

/**
 * Runs `callback` in the next turn, after the events that the kernel reports in this one. Returns a function that
 * cancels it.
 */
export function onNextTurn(callback: () => void): () => void {
  const immediate = schedule(callback);
  return () => cancel(immediate);
}

/** Resolves in the next turn of the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => schedule(resolve));
}
