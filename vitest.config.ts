import { existsSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const source = (file: string): string => fileURLToPath(new URL(`./src/${file}`, import.meta.url));

/**
 * Where tests keep their files: in memory if there is room, since on a disk most of their time is `fsync`. `TMPDIR` says
 * otherwise, as in `npm run test:durable`.
 */
function temporaryRoot(): string {
  const memory = '/dev/shm';
  if (process.env['TMPDIR'] !== undefined || !existsSync(memory)) return tmpdir();
  const { bavail, bsize } = statfsSync(memory);
  return bavail * bsize >= 2 ** 30 ? memory : tmpdir();
}

export default defineConfig({
  resolve: {
    alias: [
      { find: /^resilient-watcher$/, replacement: source('index.ts') },
      { find: /^resilient-watcher\/([\w-]+)$/, replacement: source('$1.ts') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/telemetry-guard.ts'],
    exclude: ['test/soak/**', 'test/package/**', 'test/site/**'],
    // A limit for a hang, not for speed: nothing in the suite waits on purpose.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: 'forks',
    // Nothing is left behind by a test, which also proves that the library leaves nothing.
    isolate: false,
    // Half of them wait for processes of their own.
    maxWorkers: '100%',
    env: { TMPDIR: temporaryRoot() },
  },
});
