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

test('the path of a key needs a key', () => {
  expect(() => new KubeletVolume('/tmp/x').path(undefined as never)).toThrow(
    new TypeError('KubeletVolume.path: key must be a string, got undefined'),
  );
});
