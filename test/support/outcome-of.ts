import type { FakeClock } from 'resilient-watcher/testing';

/** What the work comes to, whatever timers of the clock it waits for. Real I/O takes no fake time. */
export async function outcomeOf<T>(work: Promise<T>, clock: FakeClock): Promise<T> {
  let isSettled = false;
  const settle = (): void => void (isSettled = true);
  work.then(settle, settle);
  while (!isSettled) await clock.advance(clock.delays[0] ?? 0);
  return work;
}
