/** `node test/simulation/run.mjs`: bundles `main.ts` from `src` into a temporary file, and runs it. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { bundle, platformOf } from './bundle.mjs';

const directory = mkdtempSync(join(tmpdir(), 'simulation-'));
try {
  const file = join(directory, 'main.mjs');
  const args = process.argv.slice(2);
  await bundle('main.ts', file, undefined, [], platformOf(args));
  const { status } = spawnSync(
    process.execPath,
    ['--max-semi-space-size=32', '--enable-source-maps', '--no-warnings', file, ...args],
    {
      stdio: 'inherit',
    },
  );
  process.exitCode = status ?? 1;
} finally {
  rmSync(directory, { recursive: true, force: true });
}
