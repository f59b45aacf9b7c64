/** The rate of patches over any span of time, also after a quiet one. */
import fc from 'fast-check';
import { expect, test } from 'vitest';

import { PatchRate } from '../src/patch-rate.js';

const HOUR_MS = 3_600_000;

test('in no span of time are there more patches than the burst and what the rate allows', () => {
  const pauses = fc.array(fc.oneof(fc.nat(50), fc.nat(5_000), fc.constantFrom(HOUR_MS, 24 * HOUR_MS)), {
    minLength: 1,
    maxLength: 60,
  });
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 1, max: 10 }),
      pauses,
      (perSecond, burst, waits) => {
        const rate = new PatchRate(perSecond, burst, 0);
        const taken: number[] = [];
        let now = 0;
        for (const wait of waits) {
          now += wait;
          // As many as it gives at once.
          while (taken.length < 1_000 && rate.take(now) === 0) taken.push(now);
        }
        for (const [first, from] of taken.entries()) {
          for (const [last, to] of taken.entries()) {
            if (last < first) continue;
            expect(last - first + 1).toBeLessThanOrEqual(burst + ((to - from) * perSecond) / 1_000 + 1e-6);
          }
        }
      },
    ),
    { numRuns: 40 },
  );
});
