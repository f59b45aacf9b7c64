/**
 * How long `import` takes, in a process that has just started: `node tools/bench/run.mjs load [--rounds=15]`. The entry points
 * of the library and the peers take turns; the empty module shows what an import costs by itself.
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { barChart, writeChart } from './chart.mjs';
import { chokidars } from './chokidar.mjs';

const rounds = Number(
  process.argv.find((argument) => argument.startsWith('--rounds='))?.slice('--rounds='.length) ?? 15,
);

const MODULES = {
  'an empty module': 'data:text/javascript,',
  'resilient-watcher': new URL('../../dist/index.js', import.meta.url).href,
  'resilient-watcher/config': new URL('../../dist/config.js', import.meta.url).href,
  'resilient-watcher/kubernetes': new URL('../../dist/kubernetes.js', import.meta.url).href,
  ...chokidars,
  '@parcel/watcher': '@parcel/watcher',
};

const here = fileURLToPath(new URL('.', import.meta.url));
const times = new Map(Object.keys(MODULES).map((name) => [name, []]));
for (let round = 0; round < rounds; round += 1) {
  for (const [name, module] of Object.entries(MODULES)) {
    const code = `const at = performance.now(); await import(${JSON.stringify(module)}); console.log(performance.now() - at)`;
    const options = { cwd: here, encoding: 'utf8' };
    times
      .get(name)
      .push(Number(execFileSync(process.execPath, ['--input-type=module', '-e', code], options)));
  }
}

const rows = [...times].map(([name, all]) => {
  all.sort((one, other) => one - other);
  return { name, p50: all[Math.floor(all.length / 2)], best: all[0] };
});
console.log('\n### Loading\n\n| | p50 ms | best ms |\n| --- | --: | --: |');
for (const { name, p50, best } of rows) console.log(`| ${name} | ${p50.toFixed(1)} | ${best.toFixed(1)} |`);
writeChart(
  'load',
  barChart({
    title: '`import` in a new process, p50, ms',
    bars: rows.map(({ name, p50 }) => ({ label: name, value: p50 })),
  }),
);
