import { vi } from 'vitest';

import { systemClock } from '../../src/core/ports/clock.js';
import { nextTurn } from '../../src/core/scheduling/event-loop.js';

const HOUR_MS = 3_600_000;

/** Each call is that much later than the one before it, since a directory is swept once an hour. */
let passedMs = 0;

/** Does the work this many hours after all that was done before; times of files stay as they are. */
export async function later<T>(hours: number, work: () => T | Promise<T>): Promise<T> {
  passedMs += 2 * HOUR_MS;
  const now = vi.spyOn(systemClock, 'now').mockReturnValue(Date.now() + hours * HOUR_MS);
  const monotonic = vi.spyOn(systemClock, 'monotonic').mockReturnValue(systemClock.monotonic() + passedMs);
  try {
    return await work();
  } finally {
    now.mockRestore();
    monotonic.mockRestore();
    // The library remembers until the next turn when it began to work in this one.
    await nextTurn();
  }
}

/** When everything that was left behind counts as abandoned. */
export const aDayLater = <T>(work: () => T | Promise<T>): Promise<T> => later(25, work);
