/**
 * `npm run bench config`: what the configuration costs. Parsers at growing sizes: linear ones take a constant time for
 * each key. Then the way of an update: a swap of the mounted file, in process, until the watcher of the file and until
 * the loader emit `change`.
 *
 *     node test/bench/config.mjs [--keys 80000] [--swaps 100] [--interval 250]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { ResilientWatcher } from 'resilient-watcher';
import {
  ConfigLoader,
  dotenvParser,
  FileProvider,
  jsonParser,
  tomlParser,
  yamlParser,
} from 'resilient-watcher/config';
import { KubeletVolume } from 'resilient-watcher/testing';

import { barChart, writeChart } from './chart.mjs';
import { median, quantile } from './statistics.mjs';

const { values } = parseArgs({
  options: {
    keys: { type: 'string', default: '80000' },
    swaps: { type: 'string', default: '100' },
    interval: { type: 'string', default: '250' },
    write: { type: 'boolean', default: false },
  },
});
const most = Number(values.keys);
const sizes = [most / 16, most / 4, most].map(Math.round);

const lines = (count, line) => Array.from({ length: count }, (_, n) => line(n)).join('');

const parsing = (parser, text) => async (count) => {
  const input = text(count);
  const start = performance.now();
  await parser.parse(input);
  return performance.now() - start;
};

const loading = (sourceOf) => async (count) => {
  const loader = new ConfigLoader({ sources: [sourceOf(count)] });
  const start = performance.now();
  await loader.load();
  const elapsed = performance.now() - start;
  await loader.close();
  return elapsed;
};

const works = {
  'JSON keys': parsing(jsonParser, (count) => `{"k":0${lines(count, (n) => `,"k${n}":1`)}}`),
  'YAML keys': parsing(yamlParser, (count) => lines(count, (n) => `k${n}: 1\n`)),
  'TOML keys': parsing(tomlParser, (count) => lines(count, (n) => `k${n} = 1\n`)),
  'dotenv keys': parsing(dotenvParser, (count) => lines(count, (n) => `K${n}=1\n`)),
  variables: loading((count) => ({
    env: { prefix: 'A_', env: Object.fromEntries(Array.from({ length: count }, (_, n) => [`A_K${n}`, '1'])) },
  })),
  'values, merged and frozen': loading((count) => ({
    values: Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, { n }])),
  })),
};

const table = (head, rows) => {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column].length)));
  for (const row of [head, ...rows]) {
    console.log(row.map((cell, n) => (n ? cell.padStart(widths[n]) : cell.padEnd(widths[0]))).join('  '));
  }
  console.log();
};

async function parsers() {
  const rows = [];
  const bars = [];
  for (const [name, work] of Object.entries(works)) {
    await work(sizes[0]); // Loads the package, warms the code.
    const cells = [];
    let perKey = 0;
    for (const count of sizes) {
      const times = [await work(count), await work(count), await work(count)];
      perKey = (median(times) * 1_000) / count;
      cells.push(`${median(times).toFixed(1)} ms`, `${perKey.toFixed(2)} µs`);
    }
    rows.push([name, ...cells]);
    bars.push({ label: name, value: perKey });
  }
  writeChart('config-keys', barChart({ title: `Loading ${most} keys, µs for each key`, bars }));
  table(['', ...sizes.flatMap((count) => [`${count} keys`, 'per key'])], rows);
}

/** How long the loader took after the watcher. */
const waits = [];

/** One swap: when each of those who listen has heard of it, ms after the publishing call returned. */
async function updates(name, sourcesOf) {
  const directory = mkdtempSync(join(os.tmpdir(), 'bench-config-'));
  const volume = new KubeletVolume(join(directory, 'volume'));
  const publish = (n) => volume.publish({ 'a.json': `{"a":${n}}`, 'b.json': `{"b":${n}}` });
  publish(0);
  const watcher = new ResilientWatcher(volume.path('a.json'));
  const loader = new ConfigLoader({ sources: sourcesOf(volume) });
  let watched;
  let loaded;
  await watcher.start();
  await loader.load();
  watcher.on('change', () => (watched = performance.now()));
  loader.on('change', () => (loaded = performance.now()));
  const behind = [];
  const total = [];
  const { changes } = loader.status();
  for (let n = 1; n <= Number(values.swaps); n += 1) {
    watched = loaded = undefined;
    publish(n);
    const start = performance.now();
    await sleep(Number(values.interval));
    behind.push(loaded - watched);
    total.push(loaded - start);
  }
  const steps = loader.status().changes - changes;
  await Promise.all([watcher.close(), loader.close()]);
  rmSync(directory, { recursive: true });
  const cells = [median(behind), quantile(behind, 0.99), median(total), quantile(total, 0.99)];
  waits.push({ label: name, value: median(behind) });
  return [name, ...cells.map((ms) => `${ms.toFixed(2)} ms`), `${steps}/${values.swaps}`];
}

console.log(`Node ${process.version}, ${os.cpus()[0].model}, ${os.cpus().length} cores\n`);
await parsers();
table(
  ['a swap, until `change`', 'after the watcher', 'p99', 'in all', 'p99', 'steps'],
  [
    await updates('one file', (volume) => [{ provider: new FileProvider(volume.path('a.json')) }]),
    await updates('two files of one volume', (volume) => [
      { provider: new FileProvider(volume.path('a.json')) },
      { provider: new FileProvider(volume.path('b.json')) },
    ]),
  ],
);
writeChart(
  'config-updates',
  barChart({ title: 'A swap: from `change` of the watcher to `change` of the loader, p50, ms', bars: waits }),
);
