import { expect, test } from 'vitest';

import { Scope } from '../../src/core/scope.js';
import { CheckLoop, type Checker } from '../../src/watch/check-loop.js';

test.each([
  ['resync', 'fs'],
  ['fs', 'resync'],
])('requests by %s and by %s in one turn lead to one check, which is by the hint', async (...causes) => {
  const checks: string[] = [];
  const checker: Checker<string> = {
    checkBecause(cause) {
      checks.push(cause);
      return Promise.resolve();
    },
    checkAtOnce: () => false,
  };
  const loop = new CheckLoop(checker, new Scope());
  for (const cause of causes) loop.request(cause);
  await loop.idle();
  expect(checks).toEqual(['fs']);
});
