/** Which unit tests run on Windows: those of `npm run test:windows` on Wine, and of `npm test` on Windows itself. */
import { readdirSync } from 'node:fs';

import { root } from '../../../packages/packages.mjs';

/** The rest of the units needs links, modes or a kernel, is too slow there, or waits for a minute in real time. */
const TESTS = ['config/*', 'core/*', 'fs/globs', 'write/atomic-write-file', 'write/many-at-once'];

/** The first two load copies of modules, which only vitest can; the last one reads the sources. */
const LEFT_OUT = ['core/process-state', 'core/two-copies', 'core/redaction'];

const testsIn = (folder) =>
  readdirSync(`${root}test/${folder}`)
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `${folder}/${name.slice(0, -'.test.ts'.length)}`);

/** The files of tests that are proven to run on Windows, from the root of the repository. */
export const unitsOnWindows = TESTS.flatMap((name) =>
  name.endsWith('/*') ? testsIn(name.slice(0, -2)) : name,
)
  .filter((name) => !LEFT_OUT.includes(name))
  .map((name) => `test/${name}.test.ts`);
