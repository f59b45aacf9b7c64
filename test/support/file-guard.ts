/**
 * Loaded before every test file: a test that leaks a secret into the telemetry fails, and so does a file that leaves
 * components running, which the metrics of the next file would show, or a loop, which slows down all files that follow.
 */
import { setTimeout } from 'node:timers/promises';

import { afterAll, afterEach, expect, vi } from 'vitest';

import { runningComponents } from '../../src/core/telemetry/telemetry.js';
import { takeLeaks } from './leak-detector.js';

afterEach(() => {
  expect(takeLeaks()).toEqual([]);
});

// A server that a test has closed may still wait for its last connection.
afterAll(async () => {
  const running = (): string[] => Array.from(runningComponents(), ({ kind, name }) => `${kind} ${name}`);
  await vi.waitFor(() => expect(running()).toEqual([]), { timeout: 60_000, interval: 2 });
});

// Work that goes on from turn to turn pauses for a call or two, but not for so long.
afterAll(async () => {
  const isQuiet = async (): Promise<void> => {
    for (let look = 0; look < 10; look += 1) {
      expect(process.getActiveResourcesInfo(), 'what the file has left').not.toContain('Immediate');
      await setTimeout(1);
    }
  };
  await vi.waitFor(isQuiet, { timeout: 60_000, interval: 2 });
});
