/** What the checkers of packages say of the tarball. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { expect, inject, test } from 'vitest';

const execute = promisify(execFile);
const bin = (name: string): string => join(import.meta.dirname, 'node_modules/.bin', name);

test.each([
  ['publint', ['run', '--strict']],
  ['attw', ['--profile', 'esm-only']],
] as const)('%s finds nothing', async (name, args) => {
  await expect(execute(bin(name), [...args, inject('tarball')])).resolves.toBeDefined();
});
