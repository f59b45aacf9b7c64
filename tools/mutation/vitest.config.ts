/** The tests of one folder, as Stryker runs them. */
import type { Plugin } from 'vitest/config';

import base from '../../vitest.config.js';

/** What proves the code of a folder of src, except what takes too long to be run for each change. */
const TESTS: Readonly<Record<string, readonly string[]>> = {
  fs: ['wrong-arguments', 'fs/**/*', 'watch/*', 'watch/scenarios/scripted'],
  watch: ['wrong-arguments', 'watch/*', 'watch/*/*'],
  write: ['wrong-arguments', '{attacks,write}/*'],
  tls: ['wrong-arguments', 'tls/*'],
};

/** Stryker asks for threads, which cannot change the umask or the user of their process. */
const inProcesses: Plugin = {
  name: 'in-processes',
  configureVitest({ vitest, project }) {
    for (const { config } of [vitest, project]) config.pool = 'forks';
  },
};

const { projects: _, ...shared } = base.test ?? {};
const tests = TESTS[process.env['FOLDER'] ?? ''] ?? [];

export default {
  ...base,
  plugins: [inProcesses],
  test: { ...shared, include: tests.map((names) => `test/${names}.test.ts`) },
};
