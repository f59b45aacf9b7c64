/**
 * Looks that wait for the next turn of the event loop because earlier looks have used up the current one. Each turn
 * runs as many as fit.
 */
import { isTurnSpent, onNextTurn } from '../core/scheduling/event-loop.js';

/** Begins a look. @param event stands for the turn, see `Hint`. */
type Begin = (event: object) => void;

const waiting = new Set<Begin>();
let isScheduled = false;

/** Calls `begin` in one of the next turns, once. */
export function inNextTurn(begin: Begin): void {
  waiting.add(begin);
  if (!isScheduled) onNextTurn(beginSome);
  isScheduled = true;
}

/** Cancels the call. */
export function notInNextTurn(begin: Begin): void {
  waiting.delete(begin);
}

function beginSome(): void {
  const event = {};
  // Looks that are added in the meantime wait for the next turn.
  let left = waiting.size;
  for (const begin of waiting) {
    waiting.delete(begin);
    begin(event);
    left -= 1;
    if (left === 0 || isTurnSpent()) break;
  }
  isScheduled = waiting.size > 0;
  if (isScheduled) onNextTurn(beginSome);
}
