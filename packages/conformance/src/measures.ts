/** What a watcher costs, beside the verdicts. Each measure starts the program again, alone. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';

import { sha256 } from './contents.js';
import { Trial, type Subject } from './measures/trial.js';
import { callsDuring, cpuMs, withoutTracer } from './measures/usage.js';
import { inMountNamespace } from './requirement.js';

/** The result of a measure: numbers by name, and the same in words. */
export interface Measured {
  readonly says: string;
  readonly values?: Readonly<Record<string, number | string>>;
}

export interface Measure {
  readonly name: string;
  /** One sentence: what is measured. */
  readonly says: string;
  readonly run: (subject: Subject) => Promise<Measured>;
}

const KEY = 'key-0';
/** An update that has not been shown after this time is not, ms. */
const UNSEEN_MS = 12_000;
/** After the start, ms: a runtime compiles, and a watcher has its first rounds behind it. */
const SETTLE_MS = 3_000;
const IDLE_MS = 5_000;
const UPDATES = 25;
const FEW = 10;
const START_SECONDS = 30;
const MANY_FILES = 1_000;
const SETS = 200;
/** What a second of idling costs is subtracted from what updates cost. */
const perSecond = (count: number, ms: number): number => (count * 1_000) / ms;
const round = (value: number): number => Math.round(value * 100) / 100;
const unable = (why: string): Measured => ({ says: why });

/** Starts with one key that is shown; undefined if it is not. */
async function startOne(trial: Trial): Promise<boolean> {
  const content = trial.content();
  trial.publish({ [KEY]: content, other: 'other' });
  trial.start([trial.volume.path(KEY)]);
  if ((await trial.shown(sha256(content))) === undefined) return false;
  await trial.pause(SETTLE_MS);
  return true;
}

const NOT_STARTED = 'did not show the first state';
const NOTHING_ELSE = 'nothing else';

async function delays(trial: Trial): Promise<Measured> {
  if (!(await startOne(trial))) return unable(NOT_STARTED);
  const found: number[] = [];
  const from = trial.lines.length;
  let made = 0;
  while (made < UPDATES) {
    // Not in step with the period of any poll.
    await trial.pause(100 + Math.random() * 400);
    made += 1;
    const delay = await trial.update(KEY, UNSEEN_MS);
    if (delay === undefined) break; // what it does not see once it will not see again
    found.push(delay);
  }
  await trial.pause(200);
  if (found.length < UPDATES) return unable(`showed ${found.length} of ${made} updates`);
  const sorted = found.toSorted((a, b) => a - b);
  const at = (q: number): number => round(sorted[Math.ceil(sorted.length * q) - 1] ?? NaN);
  const needless = round((trial.lines.length - from - found.length) / found.length);
  return {
    says: `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms from the swap to the line; ${needless} needless reports for each update`,
    values: { p50Ms: at(0.5), p99Ms: at(0.99), needless },
  };
}

async function idle(trial: Trial): Promise<Measured> {
  if (!(await startOne(trial))) return unable(NOT_STARTED);
  const cpu = round(await idleCpu(trial));
  return { says: `${cpu} ms of CPU a second while nothing happens, one file`, values: { cpuMs: cpu } };
}

/** The CPU time of a second without updates, ms. */
async function idleCpu(trial: Trial): Promise<number> {
  const before = cpuMs(trial.processes);
  await trial.pause(IDLE_MS);
  return perSecond(cpuMs(trial.processes) - before, IDLE_MS);
}

/** Waits until two seconds cost the same: what the start has left to do is not idling. */
async function startedUp(trial: Trial): Promise<void> {
  let last = Infinity;
  for (let second = 0; second < START_SECONDS; second += 1) {
    const before = cpuMs(trial.processes);
    await trial.pause(1_000);
    const spent = cpuMs(trial.processes) - before;
    if (Math.abs(spent - last) <= 0.1 * last + 1) return;
    last = spent;
  }
}

async function files(trial: Trial): Promise<Measured> {
  const keys = Array.from({ length: MANY_FILES }, (_, index) => `key-${index}`);
  const contents = Object.fromEntries(keys.map((key) => [key, trial.content()]));
  trial.publish(contents);
  trial.start(keys.map((key) => trial.volume.path(key)));
  for (const content of Object.values(contents)) {
    if ((await trial.shown(sha256(content), { ms: UNSEEN_MS })) === undefined) {
      return unable(
        trial.ended === undefined ? 'did not show 1,000 files' : `with 1,000 files: ${trial.ended}`,
      );
    }
  }
  await trial.pause(SETTLE_MS);
  await startedUp(trial);
  const idleMs = await idleCpu(trial);
  const before = cpuMs(trial.processes);
  const began = performance.now();
  for (let update = 0; update < 3; update += 1) {
    if ((await trial.update(KEY, UNSEEN_MS)) === undefined)
      return unable('did not show an update of 1,000 files');
    await trial.pause(1_000);
  }
  const spent = cpuMs(trial.processes) - before - (idleMs * (performance.now() - began)) / 1_000;
  const [cpu, update] = [round(idleMs), round(Math.max(0, spent / 3))];
  return {
    says: `${cpu} ms of CPU a second while nothing happens, 1,000 files; ${update} ms for an update of one of them`,
    values: { cpuMs: cpu, updateCpuMs: update },
  };
}

async function calls(trial: Trial): Promise<Measured> {
  const reason = withoutTracer();
  if (reason !== undefined) return unable(`skipped: ${reason}`);
  if (!(await startOne(trial))) return unable(NOT_STARTED);
  const idleMs = 5_000;
  const perIdleSecond = perSecond(await callsDuring(trial.processes, () => trial.pause(idleMs)), idleMs);
  let seen = 0;
  const began = performance.now();
  const counted = await callsDuring(trial.processes, async () => {
    while (seen < FEW && (await trial.update(KEY, UNSEEN_MS)) !== undefined) {
      seen += 1;
      await trial.pause(200);
    }
  });
  const values = { idle: round(perIdleSecond) };
  const idleSays = `${values.idle} system calls a second while nothing happens`;
  if (seen < FEW) return { says: `${idleSays}; did not show an update`, values };
  const whileIdle = (perIdleSecond * (performance.now() - began)) / 1_000;
  const update = Math.round(Math.max(0, counted - whileIdle) / FEW);
  return { says: `${idleSays}, ${update} for each update`, values: { ...values, update } };
}

/** Two files of one volume. A set is torn if the two are not of the same update. */
async function sets(trial: Trial): Promise<Measured> {
  const [first, second] = ['tls.crt', 'tls.key'];
  const revisions: string[] = [];
  const publish = (): void => {
    // Short, so that many can be made.
    const text = `revision ${revisions.length} of ${trial.directory};`;
    revisions.push(text);
    trial.publish({ [first]: text, [second]: text });
  };
  publish();
  const whole = (text: string): string => sha256(text + text);
  trial.start([trial.volume.path(first), trial.volume.path(second)], { env: { WATCH_SET: '1' } });
  if ((await trial.shown(whole(revisions[0] ?? ''), { ms: UNSEEN_MS })) === undefined) {
    return unable('shows no sets: WATCH_SET is not supported');
  }
  await trial.pause(SETTLE_MS);
  for (let swap = 0; swap < SETS; swap += 1) {
    publish();
    await trial.pause(5 + Math.random() * 20);
  }
  await trial.shown(whole(revisions.at(-1) ?? ''), { ms: UNSEEN_MS });
  const known = new Set(revisions.map(whole));
  const torn = trial.lines.filter(({ digest }) => !known.has(digest)).length;
  return { says: `${torn} torn sets in ${SETS} swaps`, values: { torn, swaps: SETS } };
}

/** Mounts a FUSE file system whose server never answers over the directory `$1`. The process must keep descriptor 9. */
const HANG = 'exec 9<>/dev/fuse; mount -i -t fuse -o fd=9,rootmode=40000,user_id=0,group_id=0 hanging "$1"';
const FROM_THE_START = `${HANG}; shift; exec "$@"`;
/** When `$1.now` appears; `$1.done` says that it is mounted. */
const LATER = `(until [ -e "$1.now" ]; do sleep 0.1; done; ${HANG}; : > "$1.done"; exec sleep 1000) > /dev/null 2>&1 &
shift; exec "$@"`;

async function hang(trial: Trial): Promise<Measured> {
  const hung = join(trial.directory, 'hung');
  mkdirSync(hung);
  const prefix = (script: string): string[] => inMountNamespace(script, hung);
  const [command = '', ...args] = prefix(FROM_THE_START);
  if (spawnSync(command, [...args, 'true'], { stdio: 'ignore', timeout: 10_000 }).status !== 0) {
    return unable('skipped: FUSE cannot be mounted here');
  }
  const [other, content] = [trial.content(), trial.content()];
  const paths = [join(hung, 'app.yaml'), trial.volume.path(KEY)];
  writeFileSync(paths[0] ?? '', other);
  trial.publish({ [KEY]: content });
  const isUpdated = async (): Promise<boolean> => (await trial.update(KEY, UNSEEN_MS)) !== undefined;

  trial.start(paths, { prefix: prefix(LATER) });
  if ((await trial.shown(sha256(other))) === undefined) return unable(NOT_STARTED);
  if ((await trial.shown(sha256(content), { ms: UNSEEN_MS })) === undefined)
    return unable('showed one file only');
  await trial.pause(SETTLE_MS);
  writeFileSync(`${hung}.now`, '');
  while (!existsSync(`${hung}.done`)) await trial.pause(100);
  await trial.pause(SETTLE_MS);
  const later = (await isUpdated()) ? NOTHING_ELSE : 'the updates';

  const from = trial.lines.length;
  await trial.restart(paths, { prefix: prefix(FROM_THE_START) });
  const isShown = (await trial.shown(trial.digestOf(KEY), { ms: UNSEEN_MS, from })) !== undefined;
  await trial.pause(isShown ? SETTLE_MS : 0);
  const stops = !isShown ? 'the start' : (await isUpdated()) ? NOTHING_ELSE : 'the updates';
  return {
    says: `a mount that hangs from the start stops ${stops}; one that hangs later stops ${later}`,
    values: { stops, later },
  };
}

const measure = (name: string, says: string, run: (trial: Trial) => Promise<Measured>): Measure => ({
  ...{ name, says },
  run: async (subject) => {
    const trial = new Trial(subject);
    try {
      return await run(trial);
    } finally {
      await trial.close();
    }
  },
});

export const MEASURES: readonly Measure[] = [
  measure(
    'delay',
    `The time from the swap to the line, in ${UPDATES} updates, and the needless reports.`,
    delays,
  ),
  measure('idle', 'The CPU time while nothing happens.', idle),
  measure(
    'files',
    'The CPU time with 1,000 files, each an argument, while nothing happens and for an update.',
    files,
  ),
  measure('calls', 'The system calls while nothing happens and for an update.', calls),
  measure('sets', `Two files of one volume in ${SETS} swaps: how many sets were of two updates.`, sets),
  measure('hang', 'What goes on when another file is on a mount that does not answer.', hang),
];
