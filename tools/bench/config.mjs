/**
 * `node tools/bench/run.mjs config`: the way of an update: a swap of the mounted file, in process, until the watcher of the file and
 * until the loader emit `change`.
 *
 *     node tools/bench/config.mjs [--swaps 100] [--interval 250]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { ResilientWatcher } from 'resilient-watcher';
import { ConfigLoader, FileProvider } from 'resilient-watcher/config';
import { KubeletVolume } from 'resilient-watcher/testing';

import { median, quantile } from './statistics.mjs';

const { values } = parseArgs({
  options: {
    swaps: { type: 'string', default: '100' },
    interval: { type: 'string', default: '250' },
    write: { type: 'boolean', default: false },
  },
});

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
  return {
    sources: name,
    'after the watcher, p50 ms': median(behind).toFixed(2),
    'p99 ms': quantile(behind, 0.99).toFixed(2),
    'in all, p50 ms': median(total).toFixed(2),
    'in all, p99 ms': quantile(total, 0.99).toFixed(2),
    changes: `${steps}/${values.swaps}`,
  };
}

console.log(`Node ${process.version}, ${os.cpus()[0].model}, ${os.cpus().length} cores\n`);
console.table([
  await updates('one file', (volume) => [{ provider: new FileProvider(volume.path('a.json')) }]),
  await updates('two files of one volume', (volume) => [
    { provider: new FileProvider(volume.path('a.json')) },
    { provider: new FileProvider(volume.path('b.json')) },
  ]),
]);
