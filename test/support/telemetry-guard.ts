/** Loaded before every test file: a test that leaks a secret into the telemetry fails. */
import { afterEach, expect } from 'vitest';

import { takeLeaks } from './leak-detector.js';

afterEach(() => {
  expect(takeLeaks()).toEqual([]);
});
