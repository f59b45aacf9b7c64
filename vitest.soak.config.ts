import { defineConfig } from 'vitest/config';

import base from './vitest.config.js';

/** `npm run test:soak` */
export default defineConfig({
  ...base,
  test: { ...base.test, include: ['test/soak/**/*.test.ts'], exclude: [] },
});
