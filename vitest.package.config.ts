import { defineConfig } from 'vitest/config';

import base from './vitest.config.js';

/** `npm run test:package` */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: ['test/package/**/*.test.ts'],
    exclude: [],
    globalSetup: 'test/package/pack.ts',
    // It waits for the registry, and compiles.
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
