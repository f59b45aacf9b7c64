import { FakeClock, KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

test('a clock that a test advances moves forward only, by a number', async () => {
  const clock = new FakeClock();
  await expect(clock.advance('5' as never)).rejects.toThrow(
    new TypeError('FakeClock.advance: ms must be a number, got "5"'),
  );
  for (const ms of [-5, Number.NaN, Infinity]) {
    await expect(clock.advance(ms)).rejects.toThrow(
      new RangeError(
        `FakeClock.advance: ms must be finite and >= 0, got ${ms}; jump() sets the wall clock back`,
      ),
    );
  }
  expect(clock.monotonic()).toBe(0);
});

test('timers fire in the order of their times, and those of one time in the order in which they were set', async () => {
  const clock = new FakeClock();
  const fired: string[] = [];
  const set = (name: string, delayMs: number): void => void clock.schedule(() => fired.push(name), delayMs);
  for (const [name, delayMs] of [
    ['late', 7],
    ['first', 5],
    ['second', 5],
    ['early', 1],
    ['third', 5],
  ] as const)
    set(name, delayMs);
  clock.schedule(() => set('at once', 0), 5);
  await clock.advance(7);
  expect(fired).toEqual(['early', 'first', 'second', 'third', 'at once', 'late']);
});

test('the path of a key needs a key', () => {
  expect(() => new KubeletVolume('/tmp/x').path(undefined as never)).toThrow(
    new TypeError('KubeletVolume.path: key must be a string, got undefined'),
  );
});
