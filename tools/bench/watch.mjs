/**
 * How soon a watcher reports a swap, and what a thousand of them cost:
 *
 *     node tools/bench/run.mjs watch                 below three minutes
 *     node tools/bench/run.mjs watch --quick      about 45 seconds, with fewer samples
 *     node tools/bench/run.mjs watch --only=lat   only the latencies; `idle`: the thousand watchers; `in-process`, cold or `--hot`
 *
 * Prints tables in Markdown. The numbers of a shared machine are noisy: compare within one run.
 */
import { execFileSync, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { builds } from './builds.mjs';
import { barChart, writeChart } from './chart.mjs';
import contestants from './contestants.mjs';
import { measureInProcess } from './in-process.mjs';
import { median, quantile } from './statistics.mjs';

const [quick, isHot, areOurs] = ['--quick', '--hot', '--ours'].map((flag) => process.argv.includes(flag));
const only = process.argv.find((argument) => argument.startsWith('--only='))?.slice('--only='.length);

const KEY = 'policy.yaml';
const KEYS = [KEY, 'limits.yaml', 'routes.yaml'];

/** One after another in the fast round: with a swap every few milliseconds two cores are not enough for all. */
const ROUNDS = [
  { chart: 'slow', name: 'A swap every 600 ms', periodMs: 600, count: quick ? 12 : 80, together: true },
  { chart: 'fast', name: 'A swap every 20 ms', periodMs: 20, count: quick ? 50 : 250, together: false },
];

const IDLE_WATCHERS = 1_000;
/** Whole multiples of the 5 s of `resyncIntervalMs`, so that every window has its share of resyncs. */
const IDLE_MS = quick ? 10_000 : 20_000;
/**
 * The first resync still reads every file: only then is its signature trusted. The second compiles what the others
 * run.
 */
const SETTLED_MS = 11_500;

/**
 * A swap that is not reported after this time counts as lost: the slowest contestant, `fs.watchFile`, checks once a
 * second.
 */
const GRACE_MS = 1_500;

const DEFINITIONS = `Latency: from just before the publisher calls the \`rename\` that is the swap, until the contestant
has that content, or a newer one, in its callback. Every swap counts, so what is passed over counts as late.
Passed over: swaps whose content was never reported, only a later one; at ${GRACE_MS} ms after the last swap.
Lost: swaps after which neither that content nor a newer one was ever reported: at the end it was wrong.
False: callbacks in which the content was what this contestant had seen before, or could not be read.
CPU: of the whole process of the contestant, for each swap.
Each contestant and the publisher have a process of their own. In the slow round all of them watch at the same time,
each a volume of its own, and the swaps take turns, so that one is at work at a time. In the fast round they come one
after another; without --quick in two passes, the second in reverse order.`;

const directory = mkdtempSync(join(tmpdir(), 'bench-watch-'));
const children = new Set();

/**
 * The publisher has CPU 0 to itself, and the listeners have the others: otherwise the kernel likes to wake the listener
 * on the CPU of the publisher, and what is measured is how long the publisher goes on working.
 */
function pin(pid, cpuList) {
  if (availableParallelism() < 2) return false;
  try {
    execFileSync('taskset', ['-acp', cpuList, String(pid)], { stdio: 'ignore' });
    return true;
  } catch {
    return false; // no taskset here
  }
}

/** A child process that answers one command at a time. */
class Worker {
  #process;

  constructor(file, execArgv = []) {
    this.#process = fork(fileURLToPath(new URL(file, import.meta.url)), { execArgv });
    children.add(this.#process);
    const cpus = file === 'publisher.mjs' ? '0' : `1-${availableParallelism() - 1}`;
    this.pinned = pin(this.#process.pid, cpus);
  }

  ask(command, parameters) {
    return new Promise((resolve, reject) => {
      const failed = (code) => reject(new Error(`The process ended with ${code} at "${command}"`));
      this.#process.once('exit', failed);
      this.#process.once('message', (answer) => {
        this.#process.off('exit', failed);
        resolve(answer);
      });
      this.#process.send({ command, ...parameters });
    });
  }

  end() {
    children.delete(this.#process);
    this.#process.kill('SIGKILL');
  }
}

// ------------------------------------------------------------------------------------------------- latency

async function startContestant(contestant, publisher) {
  const volume = mkdtempSync(join(directory, 'volume-'));
  await publisher.ask('make', { directories: [volume], keys: KEYS });
  const worker = new Worker('contestant.mjs');
  const refusal = await worker.ask('start', { contestant, path: join(volume, KEY), directory: volume });
  if (refusal === null) return { contestant, volume, worker };
  console.log(`Left out: ${contestant}: ${refusal}`);
  worker.end();
  return undefined;
}

async function finish({ worker }) {
  const result = await worker.ask('stop');
  worker.end();
  return result;
}

async function runTogether(names, publisher, { periodMs, count }) {
  const running = [];
  for (const name of names) {
    const started = await startContestant(name, publisher);
    if (started) running.push(started);
  }
  const directories = running.map(({ volume }) => volume);
  const stamps = await publisher.ask('series', { directories, keys: KEYS, periodMs, count });
  await sleep(GRACE_MS);
  const results = new Map();
  for (const one of running) {
    results.set(one.contestant, [judge(stamps[one.volume], await finish(one))]);
  }
  return results;
}

async function runInTurn(names, publisher, { periodMs, count }) {
  const results = new Map(names.map((name) => [name, []]));
  for (const pass of quick ? [names] : [names, [...names].reverse()]) {
    for (const name of pass) {
      const one = await startContestant(name, publisher);
      if (!one) continue;
      const series = { directories: [one.volume], keys: KEYS, periodMs, count };
      const stamps = await publisher.ask('series', series);
      await sleep(GRACE_MS);
      results.get(name).push(judge(stamps[one.volume], await finish(one)));
    }
  }
  return results;
}

/** Compares the reports of a contestant with what was published. */
function judge(stamps, { seen, idle, cpuMs }) {
  const exact = new Set(seen.map(([sequence]) => sequence));
  const latencies = [];
  let passedOver = 0;
  let lost = 0;
  stamps.forEach((stamp, index) => {
    const sequence = index + 1;
    const report = seen.find(([reported]) => reported >= sequence);
    if (!report) lost += 1;
    else latencies.push((report[1] - stamp) / 1e6);
    if (report && !exact.has(sequence)) passedOver += 1;
  });
  return { swaps: stamps.length, latencies, passedOver, lost, idle, cpuMs };
}

function summarize(parts) {
  const sum = (name) => parts.reduce((total, part) => total + part[name], 0);
  const latencies = parts.flatMap((part) => part.latencies);
  const swaps = sum('swaps');
  return {
    swaps,
    p50: median(latencies),
    p99: quantile(latencies, 0.99),
    max: quantile(latencies, 1),
    passedOver: sum('passedOver'),
    lost: sum('lost'),
    idle: sum('idle'),
    cpuMs: sum('cpuMs') / swaps,
  };
}

// -------------------------------------------------------------------------------------------- many watchers

async function measureIdleWatchers(build, publisher) {
  const volume = mkdtempSync(join(directory, 'volume-'));
  const keys = Array.from({ length: IDLE_WATCHERS }, (_, index) => `key-${String(index).padStart(4, '0')}`);
  await publisher.ask('make', { directories: [volume], keys });
  const worker = new Worker('idle-watchers.mjs', ['--expose-gc']);
  const start = await worker.ask('start', { build, directory: volume, keys });
  await worker.ask('idle', { forMs: SETTLED_MS });
  const idle = await worker.ask('idle', { forMs: IDLE_MS });
  const swap = async (sequence, changed) => {
    await worker.ask('expectSwap');
    const at = await publisher.ask('once', { directory: volume, keys, changed, sequence });
    return worker.ask('swapped', { at });
  };
  const one = await swap(1, keys.slice(0, 1));
  const all = await swap(2);
  await worker.ask('stop');
  worker.end();
  return { build, start, idle, one, all };
}

// ------------------------------------------------------------------------------------------------- printing

const ms = (value) => (Number.isFinite(value) ? value.toFixed(value < 10 ? 2 : 0) : '–');

function table(head, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  const rule = head.map((_, index) => (index === 0 ? '---' : '--:'));
  console.log([head, rule, ...rows].map(line).join('\n'));
}

function printRound({ name, chart }, results) {
  const summaries = [...results].filter(([, parts]) => parts.length > 0);
  const rows = summaries.map(([contestant, parts]) => [contestant, summarize(parts)]);
  const floor = rows[0][1];
  console.log(`\n### ${name} (${floor.swaps} swaps each)\n`);
  table(
    ['', 'p50 ms', 'p99 ms', 'max ms', 'p50 : floor', 'passed over', 'lost', 'false', 'CPU ms'],
    rows.map(([contestant, { p50, p99, max, passedOver, lost, idle, cpuMs }]) => [
      contestant,
      ms(p50),
      ms(p99),
      ms(max),
      Number.isFinite(p50) ? `${(p50 / floor.p50).toFixed(p50 < 10 * floor.p50 ? 2 : 0)}×` : '–',
      passedOver,
      lost,
      idle,
      ms(cpuMs),
    ]),
  );
  writeChart(
    chart,
    barChart({
      title: `${name}: swap to listener, p50, ms`,
      isLog: true,
      bars: rows.map(([contestant, { p50 }]) => ({ label: contestant, value: p50 })),
    }),
  );
}

function printInProcess(scenes) {
  const pace = isHot ? 'hot: a swap every 5 ms' : 'cold: a swap every 250 ms';
  console.log(`\n### From the first native callback to the listener, in one process, ${pace}`);
  for (const { title, rows } of scenes) {
    console.log(`\n${title}:\n`);
    table(
      ['', 'p50 µs', 'p90 µs', 'p50 : floor', 'lost'],
      rows.map(({ contestant, p50, p90, lost }) => [
        contestant,
        p50.toFixed(0),
        p90.toFixed(0),
        `${(p50 / rows[0].p50).toFixed(2)}×`,
        lost,
      ]),
    );
  }
}

function printIdleWatchers({ build, start, idle, one, all }) {
  const watchers = `${IDLE_WATCHERS} watchers of ${IDLE_WATCHERS} keys of one volume`;
  console.log(`\n### ${build}: ${watchers} (default options)\n`);
  const swapRows = (title, swap) => [
    [`${title}: reported to ${swap.reported}, the last after`, `${ms(swap.allReportedMs)} ms`],
    [`${title}: CPU`, `${ms(swap.cpuMs)} ms`],
    [`${title}: checks by each watcher`, swap.checksEach.toFixed(2)],
  ];
  table(
    ['', ''],
    [
      ['CPU when idle, of one core', `${idle.cpuPercent.toFixed(2)}%`],
      ['inotify watches', start.nativeWatches],
      ['heap', `${start.heapMiB.toFixed(1)} MiB`],
      ['until all have started', `${ms(start.startMs)} ms (CPU ${ms(start.startCpuMs)} ms)`],
      ...swapRows('A swap with one new content', one),
      ...swapRows('A swap with all contents new', all),
    ],
  );
}

// ------------------------------------------------------------------------------------------------------ run

function cleanUp() {
  for (const child of children) child.kill('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
}
process.on('exit', cleanUp);
process.on('SIGINT', () => process.exit(130));

/** Above the number of CPUs others want them too, and then p99 and max say more about them than about us. */
function printLoad(moment) {
  console.log(`\nLoad average at the ${moment}: ${loadavg()[0].toFixed(1)}`);
}

const publisher = new Worker('publisher.mjs');
console.log(`Node ${process.version}, Linux ${release()}, ${availableParallelism()} × ${cpus()[0].model}`);
printLoad('beginning');
console.log(DEFINITIONS);
console.log(
  `The publisher has a CPU of its own: ${publisher.pinned ? 'yes' : 'no, so latencies are longer'}.`,
);
for (const round of only === 'idle' || only === 'in-process' ? [] : ROUNDS) {
  const run = round.together ? runTogether : runInTurn;
  printRound(round, await run(Object.keys(contestants), publisher, round));
}
if (only === undefined || only === 'in-process') {
  const counts = quick ? { count: 16, passes: 2 } : { count: 72, passes: 6 };
  printInProcess(await measureInProcess({ ...counts, isHot, areOurs }));
}
if (only === undefined || only === 'idle') {
  for (const build of Object.keys(builds)) printIdleWatchers(await measureIdleWatchers(build, publisher));
}
printLoad('end');
process.exit();
