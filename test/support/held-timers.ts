import { onTestFinished, vi } from 'vitest';

import { systemClock } from '../../src/core/ports/clock.js';

/** For what takes no clock: from now on, what is scheduled in 30 s is held. Returns these callbacks. */
export function heldTimers(): readonly (() => void)[] {
  const { schedule } = systemClock;
  const due: (() => void)[] = [];
  const spy = vi.spyOn(systemClock, 'schedule').mockImplementation((callback, delayMs, how) => {
    if (delayMs !== 30_000) return schedule.call(systemClock, callback, delayMs, how);
    due.push(callback);
    return { cancel: () => {} };
  });
  onTestFinished(() => spy.mockRestore());
  return due;
}
