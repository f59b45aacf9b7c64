import { FakeClock } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { tickEvery } from '../../src/watch/ticker.js';

function tickerOnFakeTime() {
  const clock = new FakeClock();
  let scheduled = 0;
  const refs: (boolean | undefined)[] = [];
  const schedule = (callback: () => void, delayMs: number, options?: { readonly ref?: boolean }) => {
    scheduled += 1;
    refs.push(options?.ref);
    return clock.schedule(callback, delayMs);
  };
  const counting = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    schedule,
  };
  const ticks: string[] = [];
  const ticker = (name: string, onTick?: () => void, intervalMs = 1_000, persistent = true) => {
    const options = { clock: counting, intervalMs, persistent };
    const tick = () => {
      ticks.push(name);
      onTick?.();
    };
    let stop = () => {};
    const start = () => {
      stop = tickEvery(options, tick);
    };
    return { start, stop: () => stop() };
  };
  return { clock, ticks, ticker, refs, scheduled: () => scheduled };
}

test('tickers with the same interval share one timer and tick together, whenever they were started', async () => {
  const { clock, ticks, ticker, scheduled } = tickerOnFakeTime();
  const all = ['a', 'b', 'c'].map((name) => ticker(name));
  all[0]?.start();
  await clock.advance(300);
  all[1]?.start();
  all[2]?.start();
  all[2]?.start();
  expect(scheduled()).toBe(1);
  await clock.advance(2_000);
  expect(ticks).toEqual(['a', 'b', 'c', 'a', 'b', 'c']);
  expect(scheduled()).toBe(3);
  for (const one of all) one.stop();
  expect(clock.pending).toBe(0);
});

test('one that is stopped, also by another in the same tick, is not called, and one that is started waits for the next', async () => {
  const { clock, ticks, ticker } = tickerOnFakeTime();
  const late = ticker('late');
  const stopped = ticker('stopped');
  const first = ticker('first', () => {
    stopped.stop();
    late.start();
  });
  first.start();
  stopped.start();
  await clock.advance(1_000);
  expect(ticks).toEqual(['first']);
  await clock.advance(1_000);
  expect(ticks).toEqual(['first', 'first', 'late']);
  first.stop();
  late.stop();
  expect(clock.pending).toBe(0);
});

test('each interval has its own timer, and so has what keeps no process alive', async () => {
  const { clock, ticks, ticker, refs } = tickerOnFakeTime();
  const all = [ticker('fast', undefined, 400), ticker('weak', undefined, 1_000, false), ticker('slow')];
  for (const one of all) one.start();
  expect(refs).toEqual([true, false, true]);
  await clock.advance(1_000);
  expect(ticks).toEqual(['fast', 'fast', 'weak', 'slow']);
  for (const one of all) one.stop();
});
