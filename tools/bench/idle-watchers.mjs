/** The process with many watchers of one volume: what they cost when nothing happens, and what a swap costs. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { builds } from './builds.mjs';

const now = () => Number(process.hrtime.bigint());
const cpuMs = (since) => {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1e3;
};

let watchers = [];
let reported = 0;
let lastReported = 0;
let swap;

/** The inotify watches of this process; `/proc` has one line for each. */
function nativeWatches() {
  const descriptors = '/proc/self/fdinfo';
  const lines = readdirSync(descriptors).flatMap((fd) => {
    try {
      return readFileSync(join(descriptors, fd), 'latin1').split('\n');
    } catch {
      return []; // the descriptor of this very listing
    }
  });
  return lines.filter((line) => line.startsWith('inotify wd:')).length;
}

function heapMiB() {
  globalThis.gc();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

function onChange() {
  reported += 1;
  lastReported = now();
}

const commands = {
  async start({ build, directory, keys }) {
    const { ResilientWatcher } = await import(builds[build]);
    const heapBefore = heapMiB();
    const cpu = process.cpuUsage();
    const begun = now();
    watchers = keys.map((key) => new ResilientWatcher(join(directory, key)));
    for (const watcher of watchers) {
      watcher.on('change', onChange);
      watcher.on('revision', onChange);
    }
    await Promise.all(watchers.map((watcher) => watcher.start()));
    const startMs = (now() - begun) / 1e6;
    const startCpuMs = cpuMs(cpu);
    return { startMs, startCpuMs, heapMiB: heapMiB() - heapBefore, nativeWatches: nativeWatches() };
  },

  async idle({ forMs }) {
    const cpu = process.cpuUsage();
    const begun = now();
    await sleep(forMs);
    return { cpuPercent: cpuMs(cpu) / ((now() - begun) / 1e8) };
  },

  /** Everything from here to `swapped` is one swap. */
  expectSwap() {
    reported = 0;
    swap = { cpu: process.cpuUsage(), checks: totalChecks() };
  },

  async swapped({ at }) {
    // Long enough for all that the swap leads to.
    const deadline = now() + 5e9;
    while (reported < watchers.length && now() < deadline) await sleep(20);
    await Promise.all(watchers.map((watcher) => watcher.idle()));
    await sleep(200);
    const latest = watchers.map((watcher) => watcher.status());
    return {
      reported,
      allReportedMs: (lastReported - at) / 1e6,
      cpuMs: cpuMs(swap.cpu),
      checksEach: (totalChecks() - swap.checks) / watchers.length,
      backend: latest[0].backend,
    };
  },

  async stop() {
    await Promise.all(watchers.map((watcher) => watcher.close()));
  },
};

const totalChecks = () => watchers.reduce((sum, watcher) => sum + watcher.status().checks, 0);

process.on('message', async ({ command, ...parameters }) => {
  process.send((await commands[command](parameters)) ?? null);
});
