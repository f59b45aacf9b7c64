import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

import base from './vitest.config.js';

/** What takes a number of rounds, itself or through what it shares with other tests. */
const ROUNDS = /\/(?:rounds|growth|login-scene|define-scenarios)\.js'/;

const repeated = readdirSync(join(import.meta.dirname, 'test'), { encoding: 'utf8', recursive: true })
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => join('test', name))
  .filter((file) => ROUNDS.test(readFileSync(join(import.meta.dirname, file), 'utf8')));

/** `npm run test:stress`: in full what `npm test` repeats a few times only; see `test/support/rounds.ts`. */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: repeated,
    env: { ...base.test?.env, STRESS: '1' },
    testTimeout: 600_000,
  },
});
