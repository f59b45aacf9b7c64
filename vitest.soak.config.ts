import { defineConfig } from 'vitest/config';

import stress from './vitest.stress.config.js';

/** `npm run test:soak`: random events for a minute, and in full what is repeated. */
export default defineConfig({
  ...stress,
  test: {
    ...stress.test,
    include: ['test/soak/**/*.test.ts', ...(stress.test?.include ?? [])],
    exclude: [],
  },
});
