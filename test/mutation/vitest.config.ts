/** The tests of one folder, as Stryker runs them. */
import type { Plugin } from 'vitest/config';

import base from '../../vitest.config.js';

/** The folders of tests that prove what is in a folder of src. */
const TESTS: Readonly<Record<string, string>> = {
  fs: '{fs,watch}',
  watch: 'watch',
  write: 'write',
  tls: '{tls,spiffe}',
};

/** Stryker asks for threads, which cannot change the umask or the user of their process. */
const inProcesses: Plugin = {
  name: 'in-processes',
  configureVitest({ vitest, project }) {
    for (const { config } of [vitest, project]) config.pool = 'forks';
  },
};

const { projects: _, ...shared } = base.test ?? {};
const tests = TESTS[process.env['FOLDER'] ?? ''] ?? '';

export default {
  ...base,
  plugins: [inProcesses],
  test: { ...shared, include: [`test/${tests}/**/*.test.ts`] },
};
