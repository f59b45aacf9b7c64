import { lstatSync, writeFileSync, type BigIntStats } from 'node:fs';
import { join } from 'node:path';

import { vi } from 'vitest';

import { systemClock } from '../../src/core/ports/clock.js';
import { nextTurn } from '../../src/core/scheduling/event-loop.js';
import { HeldDirectory } from '../../src/write/held-directory.js';
import { temporaryDirectory } from './temporary-directory.js';

const HOUR_MS = 3_600_000;

/** Each call is that much later than the one before it, since a directory is swept once an hour. */
let passedMs = 0;

/** Does the work this many hours after all that was done before. What it changes on the disk is stamped with that time. */
export async function later<T>(hours: number, work: () => T | Promise<T>): Promise<T> {
  passedMs += 2 * HOUR_MS;
  const beganNs = nextTick();
  const shifted = (stat: BigIntStats | undefined): BigIntStats | undefined =>
    stat && stat.ctimeNs >= beganNs
      ? Object.assign(stat, { ctimeMs: stat.ctimeMs + BigInt(hours * HOUR_MS) })
      : stat;
  const { lstat: real } = HeldDirectory.prototype;
  const lstat = vi.spyOn(HeldDirectory.prototype, 'lstat').mockImplementation(function (
    this: HeldDirectory,
    name,
  ) {
    const answer = real.call(this, name);
    return answer instanceof Promise ? answer.then(shifted) : shifted(answer);
  });
  const now = vi.spyOn(systemClock, 'now').mockReturnValue(Date.now() + hours * HOUR_MS);
  const monotonic = vi.spyOn(systemClock, 'monotonic').mockReturnValue(systemClock.monotonic() + passedMs);
  try {
    return await work();
  } finally {
    now.mockRestore();
    monotonic.mockRestore();
    lstat.mockRestore();
    // The library remembers until the next turn when it began to work in this one.
    await nextTurn();
  }
}

/** The time of the next tick of the clock of the file system, ns: all that was done before is older. */
function nextTick(): bigint {
  const file = join(temporaryDirectory(), 'clock');
  const stamp = (): bigint => {
    writeFileSync(file, 'x');
    return lstatSync(file, { bigint: true }).ctimeNs;
  };
  const first = stamp();
  for (;;) {
    const next = stamp();
    if (next > first) return next;
  }
}

/** When everything that was left behind counts as abandoned. */
export const aDayLater = <T>(work: () => T | Promise<T>): Promise<T> => later(25, work);
