/**
 * Keeps the process alive while a caller awaits something that holds no other handle. Otherwise Node.js would end the
 * process silently, with exit code 13.
 */
import { systemClock, type Scheduled } from '../ports/clock.js';

/** The timer only has to be scheduled; it never needs to fire. */
const LONG_MS = 86_400_000;

let holders = 0;
let timer: Scheduled | undefined;

/** Keeps the process alive until the returned function is called, once. */
export function holdProcess(): () => void {
  holders += 1;
  if (!timer) wait();
  return () => {
    holders -= 1;
    if (holders > 0) return;
    timer?.cancel();
    timer = undefined;
  };
}

function wait(): void {
  timer = systemClock.schedule(wait, LONG_MS);
}
