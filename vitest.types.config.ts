import { defineConfig } from 'vitest/config';

import base from './vitest.config.js';

/** The second part of `npm run typecheck`: the code on the pages. */
export default defineConfig({
  ...base,
  test: { ...base.test, include: ['test/types/**/*.test.ts'], exclude: [] },
});
