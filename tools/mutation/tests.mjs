/** Changes that meet the tests, in processes that run one file of tests each. */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, statSync, appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A try that takes longer never ends, ms. */
const LONGEST_TRY_MS = 90_000;

/** More processes than any file of tests needs: what a change leaves behind ends its process. */
const MOST_PROCESSES = 50;

/** Those that need what is built, or other users, are no part of this. */
const OTHERS = /\/(?:process|kernel)\//;

const filesIn = (path) =>
  path.endsWith('.test.ts')
    ? [path]
    : readdirSync(path, { recursive: true })
        .map((name) => join(path, name))
        .filter((name) => name.endsWith('.test.ts') && !OTHERS.test(name));

const linesOf = (log) => readFileSync(log, 'utf8').split('\n').filter(Boolean).map(JSON.parse);

/** Runs a file of tests. Resolves with whether no other process has to go on with it. */
async function runFile(file, log, env) {
  const child = spawn(
    process.execPath,
    ['node_modules/vitest/vitest.mjs', 'run', '--config', 'tools/mutation/vitest.config.ts', file],
    // Its own group, so that its processes end with it.
    { env: { ...process.env, ...env, NO_COLOR: '1' }, stdio: ['ignore', 'pipe', 'pipe'], detached: true },
  );
  const kill = () => process.kill(-child.pid, 'SIGKILL');
  // Before the directory is removed in which it writes.
  process.prependOnceListener('exit', kill);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data));
  const started = Date.now();
  let isStuck = false;
  const timer = setInterval(() => {
    if (Date.now() - Math.max(started, statSync(log).mtimeMs) < LONGEST_TRY_MS) return;
    isStuck = true;
    kill();
  }, 1_000);
  await new Promise((resolve) => child.once('close', resolve));
  clearInterval(timer);
  process.off('exit', kill);
  const last = linesOf(log).at(-1);
  const isUnderWay = last?.is === 'tried';
  if (isStuck && isUnderWay) appendFileSync(log, `${JSON.stringify({ ...last, is: 'noticed' })}\n`);
  const isOver = /^\s*Tests .*\d/m.test(output) && !output.includes('Worker exited');
  if (!isOver && !isUnderWay) console.error(`${file}:\n${output.slice(-2_000)}`);
  return isOver || !isUnderWay;
}

/**
 * @param {{ names: string[], changes: { id: number }[], directory: string }} left `names` as in `changesOf`.
 * @param {{ tests: string[], concurrency: number }} options `tests`: files or directories.
 * @param {(change: { id: number }, isFound: boolean) => void} met
 */
export async function meetTests({ names, changes, directory }, { tests, concurrency }, met) {
  const wanted = join(directory, 'wanted.json');
  writeFileSync(wanted, JSON.stringify(changes.map(({ id }) => id)));
  const files = tests.flatMap(filesIn);
  const work = async (_, index) => {
    const log = join(directory, `tries-${index}.jsonl`);
    writeFileSync(log, '');
    const env = { NAMES: JSON.stringify(names), WANTED: wanted, TRIES: log };
    for (let file = files.shift(); file; file = files.shift()) {
      for (let count = 0; count < MOST_PROCESSES && !(await runFile(file, log, env)); count += 1);
      const found = new Set();
      for (const { change, is } of linesOf(log)) if (is === 'noticed') found.add(change);
      for (const { change, is } of linesOf(log))
        if (is === 'noticed' || is === 'passed') met({ id: change }, found.has(change));
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
}
