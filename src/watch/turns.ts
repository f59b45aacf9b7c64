/**
 * Looks that wait for the next turn of the event loop because earlier looks have used up the current one. Each turn
 * runs as many as fit.
 */
import { isTurnSpent, onNextTurn } from '../core/event-loop.js';
import { Answers } from '../fs/answers.js';

/** Begins a look. */
type Begin = (answers: Answers) => void;

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
  const answers = new Answers();
  // Looks that are added in the meantime wait for the next turn.
  let left = waiting.size;
  for (const begin of waiting) {
    waiting.delete(begin);
    begin(answers);
    left -= 1;
    if (left === 0 || isTurnSpent()) break;
  }
  isScheduled = waiting.size > 0;
  if (isScheduled) onNextTurn(beginSome);
}
