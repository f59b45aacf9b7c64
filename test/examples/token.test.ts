import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { expect, test } from 'vitest';

const run = promisify(execFile);

test.each([
  ['token-refresher.mjs', 'kubeconfig rewritten; its token is accepted: true'],
  ['token-file.mjs', 'after a rotation: 200'],
  ['token-test.mjs', "the server's clock is 3600 s ahead"],
])('examples/%s runs to its end', async (name, line) => {
  const { stdout } = await run(process.execPath, [
    fileURLToPath(new URL(`../../examples/${name}`, import.meta.url)),
  ]);
  expect(stdout).toContain(line);
});
