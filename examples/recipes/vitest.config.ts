import { defineConfig } from 'vitest/config';

/** `npm run test:recipes`: the recipes with their real clients, and with real servers where the system has them. */
export default defineConfig({
  root: import.meta.dirname,
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: 'test/install.ts',
    // Limits for a hang, not for speed.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000, interval: 20 } },
    pool: 'forks',
  },
});
