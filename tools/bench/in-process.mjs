/**
 * From the first native callback after a swap to the listener, within one process:
 *
 *     node tools/bench/run.mjs watch --only=in-process [--hot] [--ours] [--beside DIRECTORY]
 *
 * Each contestant has a process of its own, which publishes, as kubelet does, a swap each 250 ms, so that the code is
 * as cold as it is in a service that waits; with `--hot` each 5 ms. With `--ours` only builds of this library take part. `fs.watch` is wrapped before a contestant is loaded, so that the moment of
 * the first native callback is known whichever library opened the watch. The process publishes without returning to
 * the event loop: what follows the swap is one burst of events.
 */
import { fork } from 'node:child_process';
import fs, { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { builds } from './builds.mjs';
import { contestantsOf, watchWith } from './chokidar.mjs';
import { median, quantile } from './statistics.mjs';

const KEY = 'policy.yaml';
const SECOND = 'limits.yaml';
const [COLD_MS, HOT_MS] = [250, 5];
/** The first swaps load code; a service has had them long ago. */
const WARM_UP = 3;

/** The targets: the paths to watch, and how a contestant without contents reads them. */
const TARGETS = {
  key: {
    path: (volume) => volume.path(KEY),
    read: (volume) => readFileSync(volume.path(KEY)),
    contentOf: (snapshot) => snapshot.content,
  },
  volume: {
    path: (volume) => volume.directory,
    read(volume) {
      const revision = volume.path('..data');
      const files = readdirSync(revision).map((name) => [name, readFileSync(join(revision, name))]);
      return new Map(files).get(KEY);
    },
    contentOf: (snapshot) => snapshot.files.get(KEY)?.content,
  },
  group: {
    path: (volume) => [volume.path(KEY), volume.path(SECOND)],
    read: (volume) => [KEY, SECOND].map((key) => readFileSync(volume.path(key)))[0],
    contentOf: (snapshot) => snapshot.files.get([...snapshot.files.keys()][0])?.content,
  },
};

/** `start(target, volume, onEvent, report)`: those whose events come from `fs.watch`. */
const CONTESTANTS = {
  'fs.watch + readFileSync (the floor)': (target, volume, onEvent) => {
    const watcher = fs.watch(volume.directory, onEvent);
    return () => watcher.close();
  },
  ...Object.fromEntries(
    Object.entries(builds).map(([name, entryPoint]) => [
      `${name}, fs`,
      async ({ path, contentOf }, volume, onEvent, report) => {
        const { ResilientWatcher } = await import(entryPoint);
        const watcher = new ResilientWatcher(path(volume), { backend: 'fs' });
        watcher.on('change', ({ current }) => report(contentOf(current)));
        await watcher.start();
        return () => watcher.close();
      },
    ]),
  ),
  ...contestantsOf(
    (module, { path }, volume, onEvent) => watchWith(module, path(volume), onEvent),
    (module, target, volume, onEvent) => watchWith(module, volume.directory, onEvent),
  ),
};

/** What is measured. A volume is a directory for chokidar in any case. */
const SCENES = [
  { title: 'A key', target: 'key', fsGroup: false },
  { title: 'A key, with fsGroup', target: 'key', fsGroup: true },
  {
    title: 'A volume of three keys, with fsGroup',
    target: 'volume',
    fsGroup: true,
  },
  { title: 'Two keys of a volume, with fsGroup', target: 'group', fsGroup: true },
];

const now = () => Number(process.hrtime.bigint());

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

async function measure({ contestant, target: name, fsGroup, count, periodMs }) {
  wrapWatch();
  const target = TARGETS[name];
  const { KubeletVolume } = await import('../../dist/testing.js');
  const directory = mkdtempSync(join(tmpdir(), 'bench-in-process-'));
  try {
    const volume = new KubeletVolume(directory, fsGroup ? { fsGroup: process.getgid() } : {});
    const contentOf = (sequence) =>
      `sequence: ${sequence}\n`.padEnd(1_024, '# a line of a configuration file\n');
    const publish = (sequence) =>
      volume.publish({
        [KEY]: contentOf(sequence),
        [SECOND]: contentOf(sequence),
        'routes.yaml': 'constant',
      });
    publish(0);
    let expected;
    let reportedAt;
    const report = (content) => {
      if (reportedAt === undefined && content?.toString('latin1').startsWith(expected)) reportedAt = now();
    };
    const onEvent = () => {
      try {
        report(target.read(volume));
      } catch {
        // in the gap of a swap
      }
    };
    const stop = await CONTESTANTS[contestant](target, volume, onEvent, report);
    const latencies = [];
    let lost = 0;
    for (let sequence = 1; sequence <= WARM_UP + count; sequence += 1) {
      await sleep(periodMs);
      expected = `sequence: ${sequence}\n`;
      firstCallback = reportedAt = undefined;
      publish(sequence);
      // Nothing was delivered while it was published.
      firstCallback = undefined;
      for (let waited = 0; reportedAt === undefined && waited < 1_000; waited += 5) await sleep(5);
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
export async function measureInProcess({ count, passes, isHot, areOurs }) {
  const periodMs = isHot ? HOT_MS : COLD_MS;
  const scenes = [];
  for (const scene of SCENES) {
    const names = Object.keys(CONTESTANTS).filter(
      (name) =>
        (scene.target !== 'volume' || !name.endsWith('on the file')) &&
        (!areOurs || !name.startsWith('chokidar')),
    );
    const found = new Map(names.map((name) => [name, { latencies: [], lost: 0 }]));
    for (let pass = 0; pass < passes; pass += 1) {
      for (const [contestant, sum] of found) {
        const { latencies, lost } = await inChild({
          ...scene,
          contestant,
          periodMs,
          count: Math.ceil(count / passes),
        });
        sum.latencies.push(...latencies);
        sum.lost += lost;
      }
    }
    const rows = [...found].map(([contestant, { latencies, lost }]) => {
      return { contestant, p50: median(latencies), p90: quantile(latencies, 0.9), lost };
    });
    scenes.push({ ...scene, rows });
  }
  return scenes;
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
}
