/**
 * All benchmarks, one after another, with fewer samples: `npm run bench`. Each part alone, and in full:
 * `npm run bench:watch`, `bench:write`, `bench:scale`, `bench:config`, `bench:load`. With `-- --write` the charts in
 * `docs` are drawn again.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const PARTS = [
  ['watch.mjs', '--quick'],
  ['scale.mjs', '--files', '1,1000'],
  ['write.mjs', '--writes', '1000'],
  ['config.mjs', '--swaps', '40'],
  ['load.mjs'],
];

const cwd = fileURLToPath(new URL('../..', import.meta.url));
const isWriting = process.argv.includes('--write');
let failed = false;
for (const [file, ...parameters] of PARTS) {
  console.log(`\n## ${[file, ...parameters].join(' ')}\n`);
  const begun = performance.now();
  const script = fileURLToPath(new URL(file, import.meta.url));
  const write = isWriting ? ['--write'] : [];
  const { status } = spawnSync(process.execPath, [script, ...parameters, ...write], {
    cwd,
    stdio: 'inherit',
  });
  failed ||= status !== 0;
  console.log(`\n${file}: ${((performance.now() - begun) / 1e3).toFixed(0)} s`);
}
process.exitCode = failed ? 1 : 0;
