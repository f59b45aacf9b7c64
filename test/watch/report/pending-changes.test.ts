import fc from 'fast-check';
import { expect, test } from 'vitest';

import { PendingChanges } from '../../../src/watch/report/pending-changes.js';

const delay = fc.double({ min: 1, max: 1_000, noNaN: true });

test('the delay before the next check moves the clock on, however it rounds', () => {
  const property = fc.property(delay, fc.array(delay, { minLength: 1, maxLength: 4 }), delay, (...times) => {
    const [start, quiet, togetherMs] = times;
    const pending = new PendingChanges();
    let now = start;
    for (let check = 0; check < 20; check += 1) {
      pending.begin();
      // The others wait for the last one as long as they may.
      for (const [index, quietMs] of [...quiet, 1e6].entries())
        pending.see(`${index}`, `${index}`, { quietMs, totalMs: 1e9 }, 'fs', now);
      const { next } = pending.due(togetherMs, now);
      const { inMs } = next ?? { inMs: 1 };
      expect(now + inMs).toBeGreaterThan(now);
      now += inMs;
    }
  });
  fc.assert(property, { numRuns: 500 });
});
