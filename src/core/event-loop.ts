/**
 * Turns of the event loop. The real functions are captured when the library is loaded, so that fake timers installed
 * later do not stop work that is ready to run.
 */
const { setImmediate: schedule, clearImmediate: cancel } = globalThis;

/**
 * Runs `callback` in the next turn, after the kernel events of this turn. Returns a function that cancels the callback.
 */
export function onNextTurn(callback: () => void): () => void {
  const immediate = schedule(callback);
  return () => cancel(immediate);
}

/** Resolves in the next turn of the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => schedule(resolve));
}
