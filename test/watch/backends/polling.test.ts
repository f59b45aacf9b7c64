import { FakeClock } from 'resilient-watcher/testing';
import { describe } from 'vitest';

import { pollingBackend } from '../../../src/watch/backends/polling.js';
import { conforms } from './conformance.js';

describe('poll', () => {
  conforms(() => {
    const clock = new FakeClock();
    return { backend: pollingBackend(clock, 1_000), native: false, nudge: () => clock.advance(1_000) };
  });
});
