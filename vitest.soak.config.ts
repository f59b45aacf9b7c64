import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

import base from './vitest.config.js';

/** What `npm test` repeats a few times only: see `test/support/rounds.ts`. */
const repeated = readdirSync(join(import.meta.dirname, 'test'), { encoding: 'utf8', recursive: true })
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => join('test', name))
  .filter((file) => readFileSync(join(import.meta.dirname, file), 'utf8').includes('/support/rounds.js'));

/** `npm run test:soak`: random events for a minute, and in full what is repeated. */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: ['test/soak/**/*.test.ts', ...repeated],
    exclude: [],
    env: { ...base.test?.env, STRESS: '1' },
    testTimeout: 600_000,
  },
});
