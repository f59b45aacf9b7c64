/**
 * What a volume or a tree of 1 to 10 000 files costs to watch: `node tools/bench/run.mjs scale`, about five minutes. Prints
 * tables in Markdown. A part of it: `node tools/bench/run.mjs scale --kinds tree --files 1,100 --contestants
 * 'resilient-watcher,chokidar 5'`.
 *
 * A volume is swapped whole, and the contestant has to have read all of it; in a tree one file is replaced by rename.
 */
import { fork } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, release, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { builds } from './builds.mjs';
import { chokidars } from './chokidar.mjs';
import { now, publish } from './stamped-swap.mjs';
import { median, quantile } from './statistics.mjs';

const { values: asked } = parseArgs({
  options: {
    kinds: { type: 'string', default: 'volume,tree' },
    files: { type: 'string', default: '1,100,1000,10000' },
    // Of all.mjs; nothing is drawn here.
    write: { type: 'boolean', default: false },
    contestants: {
      type: 'string',
      default: ['fs.watch', ...Object.keys(builds), ...Object.keys(chokidars), '@parcel/watcher'].join(','),
    },
  },
});
const SIZES = asked.files.split(',').map(Number);
const CONTESTANTS = asked.contestants.split(',');
const FILE_BYTES = 256;
/** Files in one directory of a tree. */
const DIRECTORY_FILES = 100;
/** A contestant that uses no CPU for so long has nothing left to do. */
const PAUSE_MS = 200;
/** V8 compacts a heap that has grown when it is used little for 8 s, once, which takes some 30 ms. A service has that behind it. */
const COMPACTED_AFTER_MS = 10_000;
/** A change that is not reported after this time counts as lost, ms. */
const PATIENCE_MS = 20_000;
/** One that reads all at every event may be that far behind when it is asked to stop. */
const ANSWER_PATIENCE_MS = 120_000;

const text = (sequence) => `sequence: ${sequence}\n`.padEnd(FILE_BYTES, '# a line of a file\n');

/** Publishes and returns when the swap began, ns. */
function swap(directory, size, sequence) {
  const files = Object.fromEntries(
    Array.from({ length: size }, (_, number) => [`f${number}`, text(sequence)]),
  );
  return publish(directory, files);
}

const treeFile = (directory, number) =>
  join(directory, `d${Math.floor(number / DIRECTORY_FILES)}`, `f${number}.txt`);

function makeTree(directory, size) {
  for (let number = 0; number < size; number += 1) {
    const path = treeFile(directory, number);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text(0));
  }
}

function replace(directory, size, sequence) {
  const path = treeFile(directory, (sequence * 7) % size);
  writeFileSync(`${path}.next`, text(sequence), { flush: true });
  const at = now();
  renameSync(`${path}.next`, path);
  return at;
}

const kinds = {
  volume: { make: (directory, size) => void swap(directory, size, 0), change: swap },
  tree: { make: makeTree, change: replace },
};

/** A contestant in a process of its own, with its reports. */
async function start(contestant, kind, size) {
  const directory = join(mkdtempSync(join(tmpdir(), 'bench-scale-')), 'target');
  mkdirSync(directory);
  kinds[kind].make(directory, size);
  const child = fork(fileURLToPath(new URL('scale-contestant.mjs', import.meta.url)), {
    execArgv: ['--expose-gc'],
  });
  const seen = new Map();
  let wake = () => undefined;
  let answer;
  child.on('message', (message) => {
    if (message.sequence === undefined) answer = message;
    else if (!seen.has(message.sequence)) seen.set(message.sequence, message.at);
    wake();
  });
  const until = async (ready, quietPeriodMs = PATIENCE_MS) => {
    const deadline = now() + quietPeriodMs * 1e6;
    while (!ready() && now() < deadline) {
      await Promise.race([new Promise((resolve) => (wake = resolve)), sleep(250)]);
    }
    return ready();
  };
  const ask = async (message) => {
    answer = undefined;
    child.send(message);
    if (!(await until(() => answer !== undefined, ANSWER_PATIENCE_MS)))
      throw new Error(`${contestant}: no answer`);
    return answer;
  };
  const { started } = await ask({ command: 'start', contestant, kind, directory });
  return { ...started, contestant, directory, child, seen, until, ask, latencies: [], lost: 0 };
}

/** The CPU time of a process until now, in ticks of 10 ms. */
function cpuTicks({ pid }) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

/** Resolves when nothing of what follows a report is left to do, so that it does not delay the next one. */
async function rest({ child }) {
  const deadline = now() + ANSWER_PATIENCE_MS * 1e6;
  for (let before = -1; before !== cpuTicks(child) && now() < deadline;) {
    before = cpuTicks(child);
    await sleep(PAUSE_MS);
  }
}

/** All contestants watch at the same time, each a copy of its own. The changes take turns, so that one is at work. */
async function measure(kind, size) {
  const count = size >= 10_000 ? 6 : 12;
  const all = [];
  for (const contestant of CONTESTANTS) all.push(await start(contestant, kind, size));
  await sleep(COMPACTED_AFTER_MS);
  for (const one of all) await one.ask({ command: 'begin' });
  for (let sequence = 1; sequence <= count; sequence += 1) {
    for (const one of all) {
      await rest(one);
      const at = kinds[kind].change(one.directory, size, sequence);
      if (await one.until(() => one.seen.has(sequence)))
        one.latencies.push((one.seen.get(sequence) - at) / 1e6);
      else one.lost += 1;
    }
  }
  for (const one of all) {
    await rest(one);
    const { stopped } = await one.ask({ command: 'stop' });
    one.cpuMs = stopped.cpuMs / count;
    one.child.kill('SIGKILL');
    rmSync(dirname(one.directory), { recursive: true });
  }
  return all;
}

const round = (value) => (!Number.isFinite(value) ? '–' : value < 10 ? value.toFixed(2) : value.toFixed(0));

console.log(
  `Node ${process.version}, Linux ${release()}, ${cpus().length} CPUs, load ${loadavg()[0].toFixed(1)}`,
);
for (const kind of asked.kinds.split(',')) {
  console.log(`\n### ${kind === 'volume' ? 'A volume, swapped whole' : 'A tree, one file replaced'}\n`);
  console.log(
    '| files | contestant | p50 ms | worst ms | lost | CPU a change, ms | inotify watches | heap MiB | start ms |',
  );
  console.log('|---|---|---|---|---|---|---|---|---|');
  for (const size of SIZES) {
    for (const one of await measure(kind, size)) {
      const { contestant, latencies, lost, cpuMs, watches, heapMiB, startMs } = one;
      const p50 = median(latencies);
      const cells = [
        round(p50),
        round(quantile(latencies, 1)),
        lost,
        round(cpuMs),
        watches,
        round(heapMiB),
        round(startMs),
      ];
      console.log(`| ${size} | ${contestant} | ${cells.join(' | ')} |`);
    }
  }
}
