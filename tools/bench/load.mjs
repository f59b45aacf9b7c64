/**
 * How long `import` takes, in a process that has just started, and the processor time of that process:
 * `node tools/bench/run.mjs load [--rounds=21]`. The entry points of the library and the peers take turns; the empty module
 * shows what an import and a process cost by themselves.
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { builds } from './builds.mjs';
import { barChart, writeChart } from './chart.mjs';
import { chokidars } from './chokidar.mjs';

const rounds = Number(
  process.argv.find((argument) => argument.startsWith('--rounds='))?.slice('--rounds='.length) ?? 21,
);

const MODULES = {
  'an empty module': 'data:text/javascript,',
  ...builds,
  'resilient-watcher/config': new URL('../../dist/config.js', import.meta.url).href,
  'resilient-watcher/kubernetes': new URL('../../dist/kubernetes.js', import.meta.url).href,
  ...chokidars,
  '@parcel/watcher': '@parcel/watcher',
};

// Reading certificates takes a process more time than all imports.
const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
const here = fileURLToPath(new URL('.', import.meta.url));
const times = new Map(Object.keys(MODULES).map((name) => [name, []]));
for (let round = 0; round < rounds; round += 1) {
  for (const [name, module] of Object.entries(MODULES)) {
    const code = `const at = process.hrtime.bigint(); await import(${JSON.stringify(module)});
      const ms = Number(process.hrtime.bigint() - at) / 1e6; const { user, system } = process.cpuUsage();
      console.log(JSON.stringify({ ms, cpuMs: (user + system) / 1e3 }))`;
    const options = { cwd: here, encoding: 'utf8', env };
    times
      .get(name)
      .push(JSON.parse(execFileSync(process.execPath, ['--input-type=module', '-e', code], options)));
  }
}

const sorted = (numbers) => numbers.toSorted((one, other) => one - other);
const median = (numbers) => sorted(numbers)[Math.floor(numbers.length / 2)];

const [empty] = times.values();
const rows = [...times].map(([name, all]) => {
  const ms = all.map((each) => each.ms);
  // Of the same round, because other work on the machine makes every process slower.
  const cpuMs = all.map((each, round) => each.cpuMs - empty[round].cpuMs);
  return { name, p50: median(ms), best: sorted(ms)[0], cpuMs: median(cpuMs) };
});
const chokidar = rows.find(({ name }) => name === 'chokidar 5').cpuMs;
console.log(
  '\n### Loading\n\n| | p50 ms | best ms | CPU beyond the empty module, p50 ms | : chokidar 5 |\n| --- | --: | --: | --: | --: |',
);
for (const { name, p50, best, cpuMs } of rows)
  console.log(
    `| ${name} | ${p50.toFixed(1)} | ${best.toFixed(1)} | ${cpuMs.toFixed(1)} | ${(cpuMs / chokidar).toFixed(2)} |`,
  );
writeChart(
  'load',
  barChart({
    title: '`import` in a new process, p50, ms',
    bars: rows.map(({ name, p50 }) => ({ label: name, value: p50 })),
  }),
);
