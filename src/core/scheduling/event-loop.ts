/**
 * The event loop: its turns, and what keeps it going. The real functions are captured when the library is loaded, so
 * that fake timers installed later do not stop work that is ready to run.
 */
import { systemClock } from '../ports/clock.js';
import { processState } from '../process-state.js';

const { setImmediate: schedule, clearImmediate: cancel } = globalThis;

/** How long the library may work before the rest of the process gets a turn, ms. */
const TURN_MS = 4;

/** When work began in the current turn, monotonic ms; undefined if it has not. */
const turn = processState('turn', (): { began?: number | undefined } => ({}));

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

/** Starts the budget of this turn, if the library has not worked in it yet. */
export function startTurnBudget(): void {
  const current = turn();
  if (current.began !== undefined) return;
  current.began = systemClock.monotonic();
  schedule(() => (current.began = undefined));
}

/**
 * Whether the library has worked so long in this turn that it should continue in the next one. The time counts for the
 * whole process: a program that awaits one short read after another must not starve its timers.
 */
export function isTurnSpent(): boolean {
  const { began } = turn();
  return began !== undefined && systemClock.monotonic() - began > TURN_MS;
}

/**
 * Keeps the process alive until the returned function is called, while a caller awaits something that holds no other
 * handle. Otherwise Node.js would end the process silently, with exit code 13.
 */
export function holdProcess(): () => void {
  const held = systemClock.schedule(() => undefined, Number.MAX_SAFE_INTEGER);
  return () => held.cancel();
}
