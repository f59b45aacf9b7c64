import type { FakeClock } from 'resilient-watcher/testing';

import { realIo } from './real-io.js';

/** What the work comes to, whatever timers of the clock it waits for. Reading files takes no fake time. */
export async function outcomeOf<T>(work: Promise<T>, clock: FakeClock): Promise<T> {
  const progress = { isSettled: false };
  const settle = (): void => {
    progress.isSettled = true;
  };
  work.then(settle, settle);
  await realIo();
  while (!progress.isSettled) {
    await clock.advance(clock.delays[0] ?? 0);
    await realIo();
  }
  return work;
}
