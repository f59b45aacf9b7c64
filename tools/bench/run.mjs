/**
 * `node tools/bench/run.mjs`: the benchmarks, one after another, with fewer samples; with `--write` the charts in `docs` are drawn
 * again. `node tools/bench/run.mjs watch --quick`: one part, with its own flags; without flags, in full.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** The parameters of each part in the run of all; a part without is run on request only. */
const PARTS = {
  watch: ['--quick'],
  scale: ['--files', '1,1000'],
  write: ['--writes', '1000'],
  config: ['--swaps', '40'],
  load: [],
  tls: undefined,
  telemetry: undefined,
  'non-root': undefined,
  fleet: undefined,
  'pod-sync': undefined,
};
const FILES = { fleet: '../fleet/simulate.mjs', 'pod-sync': '../fleet/pod-sync.mjs' };

const cwd = fileURLToPath(new URL('../..', import.meta.url));

function run(part, parameters) {
  const script = fileURLToPath(new URL(FILES[part] ?? `${part}.mjs`, import.meta.url));
  return spawnSync(process.execPath, [script, ...parameters], { cwd, stdio: 'inherit' }).status === 0;
}

function runAll(flags) {
  let succeeded = true;
  for (const [part, parameters] of Object.entries(PARTS)) {
    if (!parameters) continue;
    console.log(`\n## ${[part, ...parameters].join(' ')}\n`);
    const begun = performance.now();
    succeeded = run(part, [...parameters, ...flags]) && succeeded;
    console.log(`\n${part}: ${((performance.now() - begun) / 1e3).toFixed(0)} s`);
  }
  return succeeded;
}

const [part, ...flags] = process.argv.slice(2);
if (part === undefined || part === '--write') {
  process.exitCode = runAll(process.argv.slice(2)) ? 0 : 1;
} else if (part in PARTS) {
  process.exitCode = run(part, flags) ? 0 : 1;
} else {
  console.error(`There is no benchmark "${part}": ${Object.keys(PARTS).join(', ')}`);
  process.exitCode = 2;
}
