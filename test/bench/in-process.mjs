/**
 * From the first native callback after a swap to the listener, within one process:
 *
 *     npm run bench:watch -- --only=in-process
 *
 * Each contestant has a process of its own, which publishes, as kubelet does, a swap each 250 ms, so that the code is
 * as cold as it is in a service that waits. `fs.watch` is wrapped before a contestant is loaded, so that the moment
 * of the first native callback is known whoever opened the watch. The process publishes without returning to the event
 * loop: what follows the swap is one burst of events.
 */
import { fork } from 'node:child_process';
import fs, { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const KEY = 'policy.yaml';
const PERIOD_MS = 250;
/** The first swaps load code; a service has had them long ago. */
const WARM_UP = 3;

/** What takes part: those whose events come from `fs.watch`. */
const CONTESTANTS = {
  floor: 'fs.watch + readFileSync (the floor)',
  ours: 'resilient-watcher, fs',
  chokidarFile: 'chokidar 5 on the file',
  chokidarDirectory: 'chokidar 5 on the directory',
};

const now = () => Number(process.hrtime.bigint());
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

let firstCallback;

/** Stamps the first native callback, before anything is loaded that might take `fs.watch`. */
function wrapWatch() {
  const { watch } = fs;
  fs.watch = (path, options, listener) => {
    const watcher = typeof options === 'function' ? watch(path) : watch(path, options);
    watcher.on('change', () => (firstCallback ??= now()));
    const given = typeof options === 'function' ? options : listener;
    if (given) watcher.on('change', given);
    return watcher;
  };
  syncBuiltinESMExports();
}

async function measure({ contestant, fsGroup, count }) {
  wrapWatch();
  const { default: contestants } = await import('./contestants.mjs');
  const { KubeletVolume } = await import('../../dist/testing.js');
  const directory = mkdtempSync(join(tmpdir(), 'bench-in-process-'));
  try {
    const volume = new KubeletVolume(directory, fsGroup ? { fsGroup: process.getgid() } : {});
    const publish = (sequence) =>
      volume.publish({
        [KEY]: `sequence: ${sequence}\n`.padEnd(1_024, '# a line of a configuration file\n'),
        'limits.yaml': `sequence: ${sequence}\n`.padEnd(1_024, '# a line of a configuration file\n'),
        'routes.yaml': 'constant',
      });
    publish(0);
    const path = volume.path(KEY);
    let expected;
    let reportedAt;
    const report = (content) => {
      if (reportedAt === undefined && content.toString('latin1').startsWith(expected)) reportedAt = now();
    };
    const look = () => {
      try {
        report(readFileSync(path));
      } catch {
        // in the gap of a swap
      }
    };
    const stop = await contestants[contestant](path, directory, look, report);
    const latencies = [];
    let lost = 0;
    for (let sequence = 1; sequence <= WARM_UP + count; sequence += 1) {
      await sleep(PERIOD_MS);
      expected = `sequence: ${sequence}\n`;
      firstCallback = reportedAt = undefined;
      publish(sequence);
      // Nothing was delivered while it was published.
      firstCallback = undefined;
      for (let waited = 0; reportedAt === undefined && waited < 1_000; waited += 20) await sleep(20);
      if (sequence <= WARM_UP) continue;
      if (reportedAt === undefined) lost += 1;
      else latencies.push((reportedAt - firstCallback) / 1e3);
    }
    await stop();
    return { latencies, lost };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Each contestant in turn, in as many passes as there are, so that what else the machine does meets all of them. */
export async function measureInProcess({ count, passes }) {
  const rows = [];
  for (const fsGroup of [false, true]) {
    const found = new Map(Object.values(CONTESTANTS).map((name) => [name, { latencies: [], lost: 0 }]));
    for (let pass = 0; pass < passes; pass += 1) {
      for (const [contestant, sum] of found) {
        const { latencies, lost } = await inChild({ contestant, fsGroup, count: Math.ceil(count / passes) });
        sum.latencies.push(...latencies);
        sum.lost += lost;
      }
    }
    for (const [contestant, { latencies, lost }] of found) {
      latencies.sort((one, other) => one - other);
      const quantile = (q) => latencies[Math.ceil(q * latencies.length) - 1] ?? Infinity;
      rows.push({ contestant, fsGroup, p50: quantile(0.5), p90: quantile(0.9), lost });
    }
  }
  return rows;
}

function inChild(parameters) {
  return new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(import.meta.url), ['--child']);
    child.once('message', (result) => {
      resolve(result);
      child.kill('SIGKILL');
    });
    child.once('exit', (code) => reject(new Error(`The contestant ended with ${code}`)));
    child.send(parameters);
  });
}

if (process.argv.includes('--child')) {
  process.on('message', async (parameters) => process.send(await measure(parameters)));
} else if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const { contestant, fsGroup, p50, p90, lost } of await measureInProcess({ count: 16, passes: 2 })) {
    console.log(
      fsGroup ? 'walk   ' : 'no walk',
      contestant.padEnd(36),
      p50.toFixed(0),
      p90.toFixed(0),
      'µs',
      lost,
    );
  }
}
