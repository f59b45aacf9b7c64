import { defineConfig } from 'vitest/config';

/** `npm run test:site`: the built site in a browser, if there is one. */
export default defineConfig({
  root: import.meta.dirname,
  test: { include: ['test/**/*.test.ts'], testTimeout: 300_000, hookTimeout: 300_000, pool: 'forks' },
});
