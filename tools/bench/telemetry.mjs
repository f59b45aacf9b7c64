/**
 * What telemetry costs, with and without subscribers:
 *
 *     node tools/bench/run.mjs telemetry             about half a minute
 *     node tools/bench/run.mjs telemetry --quick  a few seconds, with fewer samples
 *
 * Prints a table in Markdown. `unobserved` is measured twice: the difference between its two lines is what this machine
 * cannot tell apart.
 */
import { channel, tracingChannel } from 'node:diagnostics_channel';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import client from 'prom-client';
import { logTo, observe, ResilientWatcher } from 'resilient-watcher';
import { collectMetrics } from 'resilient-watcher/prometheus';
import { KubeletVolume } from 'resilient-watcher/testing';

import { median } from './statistics.mjs';

const quick = process.argv.includes('--quick');
const ROUNDS = quick ? 5 : 15;
const CHECKS = quick ? 200 : 1_000;
const SWAPS = quick ? 20 : 60;

const silent = { debug() {}, info() {}, warn() {}, error() {} };
const CASES = [
  ['unobserved', () => ({ close() {} })],
  ['an observer that does nothing', () => observe({ point() {}, started() {}, settled() {} })],
  ['Prometheus', () => collectMetrics({ client, registry: new client.Registry() })],
  ['Prometheus and a log', () => both()],
  ['unobserved, again', () => ({ close() {} })],
];

function both() {
  const metrics = collectMetrics({ client, registry: new client.Registry() });
  const log = logTo(silent);
  return {
    close() {
      metrics.close();
      log.close();
    },
  };
}

const directory = mkdtempSync(join(tmpdir(), 'bench-telemetry-'));
const volume = new KubeletVolume(join(directory, 'policy'));
let serial = 0;
const swap = () => volume.publish({ 'policy.yaml': `serial: ${(serial += 1)}` });
swap();
const watcher = new ResilientWatcher(volume.path('policy.yaml'), {
  backend: 'poll',
  resyncIntervalMs: 0,
  pollIntervalMs: 3_600_000,
});
await watcher.start();

/** Microseconds for each call. */
async function timed(count, work) {
  const began = process.hrtime.bigint();
  for (let nth = 0; nth < count; nth += 1) await work();
  return Number(process.hrtime.bigint() - began) / 1_000 / count;
}

const results = new Map(CASES.map(([name]) => [name, { checks: [], swaps: [] }]));
for (let round = 0; round < ROUNDS; round += 1) {
  for (const [name, subscribe] of CASES) {
    const subscription = subscribe();
    const { checks, swaps } = results.get(name);
    checks.push(await timed(CHECKS, () => watcher.check()));
    swaps.push(
      await timed(SWAPS, () => {
        swap();
        return watcher.check();
      }),
    );
    subscription.close();
  }
}
await watcher.close();
rmSync(directory, { recursive: true });

console.log('| subscribers | check without a change, µs | swap, check and report, µs |');
console.log('|---|--:|--:|');
for (const [name, { checks, swaps }] of results) {
  console.log(`| ${name} | ${median(checks).toFixed(1)} | ${median(swaps).toFixed(1)} |`);
}

const GUARDS = 10_000_000;
const point = channel('bench:unobserved');
const operation = tracingChannel('bench.unobserved');
let observed = 0;
const guard = await timed(1, () => {
  for (let nth = 0; nth < GUARDS; nth += 1)
    if (point.hasSubscribers || operation.hasSubscribers) observed += 1;
});
console.log(
  `\nAsking both kinds of channel whether anybody listens: ${((guard / GUARDS) * 1_000).toFixed(1)} ns (${observed})`,
);
