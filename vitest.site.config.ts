import { defineConfig } from 'vitest/config';

import base from './vitest.config.js';

/** `npm run test:site`, after `npm run docs`. */
export default defineConfig({
  ...base,
  test: { ...base.test, include: ['test/site/**/*.test.ts'], exclude: [], testTimeout: 300_000 },
});
