/**
 * Watching as a container usually does: as another user than root, who publishes. `node tools/bench/run.mjs non-root`, as root.
 * kubelet makes the directory of a new revision with mode 0700 and opens it to others with the next system call.
 * Counted: updates whose content was seen, and processes that an error has ended.
 *
 *   --processes 20   for each contestant
 *   --updates 12     in each process
 *   --period 250     ms from one update to the next
 *   --only chokidar  contestants with this in their names
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, watch } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { chokidars } from './chokidar.mjs';
import contestants from './contestants.mjs';

const NOBODY = 65_534;
const GROUP = 1_000;

const ALL = {
  'resilient-watcher': contestants['resilient-watcher, fs'],
  'fs.watch on the file': (path, directory, onEvent) => watch(path, onEvent),
  ...Object.fromEntries(Object.entries(contestants).filter(([name]) => name.startsWith('chokidar'))),
};

const contentOf = (sequence) => `sequence: ${sequence}\n`;

/** A process of its own that watches. Only errors that nobody handles end it. */
async function contest(name, directory) {
  // What is loaded lazily is loaded now: the packages may be where this user cannot read them.
  await Promise.all(['../../dist/index.js', ...Object.values(chokidars)].map((module) => import(module)));
  process.setgroups([GROUP]);
  process.setgid(NOBODY);
  process.setuid(NOBODY);
  const path = join(directory, 'app.yaml');
  const seen = new Set();
  const onEvent = () => {
    try {
      seen.add(readFileSync(path, 'utf8'));
    } catch {
      // Between two revisions; a later event finds it.
    }
  };
  await ALL[name](path, directory, onEvent, (content) => seen.add(String(content)));
  process.send('watching');
  await once(process, 'message');
  process.send([...seen], () => process.exit());
}

async function measure(name, { updates, period, KubeletVolume }) {
  const root = mkdtempSync(join(tmpdir(), 'non-root-'));
  chmodSync(root, 0o755);
  const volume = new KubeletVolume(join(root, 'volume'), { fsGroup: GROUP });
  const publish = (sequence) => volume.publish({ 'app.yaml': contentOf(sequence), 'other.yaml': 'same' });
  publish(0);
  const child = fork(fileURLToPath(import.meta.url), ['--contest', name, volume.directory], { silent: true });
  let output = '';
  child.stderr.on('data', (text) => (output += text));
  const ended = once(child, 'exit').then(([code]) => code);
  await once(child, 'message');
  for (let sequence = 1; sequence <= updates; sequence += 1) {
    await sleep(period);
    publish(sequence);
  }
  await sleep(1_000);
  if (child.connected) child.send('end');
  const seen = await Promise.race([
    once(child, 'message').then(([list]) => list),
    ended.then(() => undefined),
  ]);
  rmSync(root, { recursive: true });
  const contents = Array.from({ length: updates }, (_, index) => contentOf(index + 1));
  return seen
    ? { seen: contents.filter((content) => seen.includes(content)).length }
    : { error: /^\w*Error: .*$/m.exec(output)?.[0].replace(/'.*'/, '…') ?? output };
}

async function main({ processes, updates, period, only }) {
  if (process.getuid?.() !== 0) throw new Error('this must run as root, so that it can become another user');
  const { KubeletVolume } = await import('../../dist/testing.js');
  console.log(
    `${processes} processes of each, ${updates} updates ${period} ms apart, Node ${process.version}\n`,
  );
  console.log('|  | processes ended by an error | updates seen by the others |');
  console.log('| --- | --: | --: |');
  const errors = new Set();
  for (const name of Object.keys(ALL).filter((one) => one.includes(only))) {
    const runs = [];
    for (let run = 0; run < processes; run += 1)
      runs.push(await measure(name, { updates, period, KubeletVolume }));
    const lived = runs.filter(({ seen }) => seen !== undefined);
    for (const { error } of runs) if (error) errors.add(error);
    const seen = lived.reduce((sum, one) => sum + one.seen, 0);
    console.log(
      `| ${name} | ${runs.length - lived.length} of ${runs.length} | ${seen} of ${lived.length * updates} |`,
    );
  }
  for (const error of errors) console.log(`\n${error}`);
}

const [flag, name, directory] = process.argv.slice(2);
if (flag === '--contest') {
  await contest(name, directory);
} else {
  const number = (value) => ({ type: 'string', default: String(value) });
  const { values } = parseArgs({
    options: {
      processes: number(20),
      updates: number(12),
      period: number(250),
      only: { type: 'string', default: '' },
    },
  });
  const { only, ...numbers } = values;
  await main({
    only,
    ...Object.fromEntries(Object.entries(numbers).map(([key, value]) => [key, Number(value)])),
  });
}
