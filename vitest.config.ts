import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const source = (file: string): string => fileURLToPath(new URL(`./src/${file}`, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^resilient-watcher$/, replacement: source('index.ts') },
      { find: /^resilient-watcher\/config$/, replacement: source('config.ts') },
      { find: /^resilient-watcher\/kubernetes$/, replacement: source('kubernetes.ts') },
      { find: /^resilient-watcher\/testing$/, replacement: source('testing.ts') },
      { find: /^resilient-watcher\/action$/, replacement: source('action.ts') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/soak/**'],
    // A limit for a hang, not for speed: nothing in the suite waits on purpose.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: 'forks',
  },
});
