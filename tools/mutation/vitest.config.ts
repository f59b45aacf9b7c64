/** The tests, as they meet the changes of the code: `tests.mjs` says which. */
import { relative, resolve } from 'node:path';
import type { Plugin } from 'vitest/config';

import base from '../../vitest.config.js';
// @ts-expect-error -- plain JavaScript, which `node tools/mutation/run.mjs` runs as it is
import { changesOf } from './changes.mjs';

const names = JSON.parse(process.env['NAMES'] ?? '[]') as string[];
const { texts } = (await (changesOf as (names: string[]) => Promise<unknown>)(names)) as {
  texts: ReadonlyMap<string, string>;
};

const changed: Plugin = {
  name: 'changed',
  enforce: 'pre',
  transform: (_, id) => texts.get(relative(resolve('src'), id)),
};

const { projects: _, setupFiles: __, ...shared } = base.test ?? {};

export default {
  ...base,
  plugins: [changed],
  test: {
    ...shared,
    include: ['test/**/*.test.ts'],
    runner: './tools/mutation/test-runner.ts',
    dangerouslyIgnoreUnhandledErrors: true,
    maxWorkers: 1,
  },
};
