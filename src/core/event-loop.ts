/**
 * Turns of the event loop. The real functions are taken when the library is loaded: fake timers that a test installs
 * later cannot hold up work that is no wait.
 */
const { setImmediate: schedule, clearImmediate: cancel } = globalThis;

/** Runs `callback` in the next turn, after what the kernel reports in this one. Returns what cancels it. */
export function onNextTurn(callback: () => void): () => void {
  const immediate = schedule(callback);
  return () => cancel(immediate);
}

/** Resolves in the next turn: lets the event loop do what waits. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => schedule(resolve));
}
