/** `node test/simulation/calibrate.mjs [--runs N] [--only TEXT]`: after how many schedules each mutant is found. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { bundle, changeOf } from './bundle.mjs';
import { MUTANTS } from './mutants.mjs';

const { values } = parseArgs({
  options: { runs: { type: 'string', default: '100000' }, only: { type: 'string', default: '' } },
});
const directory = mkdtempSync(join(tmpdir(), 'simulation-'));
try {
  const out = join(directory, 'main.mjs');
  for (const [name, file, text, replacement] of MUTANTS) {
    if (!name.includes(values.only)) continue;
    await bundle('main.ts', out, changeOf({ file, text, replacement }));
    const { stdout } = spawnSync(
      process.execPath,
      ['--max-semi-space-size=32', out, '--runs', values.runs, '--first'],
      {
        encoding: 'utf8',
      },
    );
    const [, kind, count, invariant] =
      /kind ([\w-]+), after (\d+) schedules: invariant (\d+)/.exec(stdout) ?? [];
    console.log(`| ${name} | ${count ?? `survives ${values.runs}`} | ${kind ?? ''} | ${invariant ?? ''} |`);
  }
} finally {
  rmSync(directory, { recursive: true, force: true });
}
