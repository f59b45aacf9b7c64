/**
 * `npm run test:all`: every step that `npm test` is not, one after the other. `npm run test:all -- test:docs lint` runs these
 * steps. Each step runs alone, too: `npm run test:docs`. At the end: how long each took, what failed, and what was skipped and why.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const LIMIT_MS = 20 * 60_000;

// What runs this file: on Windows `npm` is no program, but a script of the shell.
const npm = process.env.npm_execpath ? [process.execPath, process.env.npm_execpath] : ['npm'];

// What a server knows of its clients, and what the default CA list can do, depends on the version of Node.js.
const newerNode = process.env.TEST_NODE;
const platforms = ['Node 20.19.0', 'Node 26', 'Bun', 'Deno'];

/** name, command; a name that package.json has is a script. */
const STEPS = [
  // All rounds of test:process and test:kernel, and those of npm test: they are not steps of their own here.
  ['test:stress'],
  ['test:simulation'],
  ['test:durable'],
  // Ends with 0, and says why, where it may not mount.
  ['test:disk'],
  // Ends with 0, and says why, where Wine is missing.
  ['test:windows'],
  ['test:docs'],
  ['test:package'],
  ['platforms', 'node', 'test/package/platforms.mjs', ...platforms],
  ['newer Node.js', ...(newerNode ? [newerNode, 'node_modules/vitest/vitest.mjs', 'run', 'test/tls'] : [])],
  // Ends with 1 if this library or the reference reader gets one sequence wrong.
  ['scoreboard', 'node', 'packages/conformance/scoreboard.mjs', 'Node'],
  ['test:recipes'],
  ['test:site'],
  // At the end: of the folders with packages of their own, it checks those that are installed.
  ['lint'],
];

const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'));
const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in scripts) && !STEPS.some(([step]) => step === name));
if (unknown.length > 0) throw new Error(`No step is called ${unknown.join(', ')}`);
const steps =
  wanted.length > 0 ? wanted.map((name) => STEPS.find(([step]) => step === name) ?? [name]) : STEPS;

const folder = mkdtempSync(join(tmpdir(), 'test-all-'));
const list = join(folder, 'skipped');
const running = join(folder, 'running');
writeFileSync(list, '');

/** The test files that have begun and not ended. */
function unfinished() {
  const lines = readFileSync(running, 'utf8').split('\n');
  const begun = lines
    .filter((line) => line.startsWith('begins '))
    .map((line) => line.slice('begins '.length));
  return begun.filter((file) => !lines.includes(`ends ${file}`));
}

const skipped = [];
const results = [];
for (const [name, ...given] of steps) {
  const [command, ...args] = name in scripts ? [...npm, 'run', '--silent', name] : given;
  if (command === undefined) {
    skipped.push(`${name}: TEST_NODE is not set`);
    continue;
  }
  console.log(`\n== ${name}`);
  const began = Date.now();
  writeFileSync(running, '');
  const { status } = spawnSync(command, args, {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, SKIPPED_LIST: list, RUNNING_LIST: running },
    timeout: LIMIT_MS,
    killSignal: 'SIGKILL',
  });
  const seconds = Math.round((Date.now() - began) / 1_000);
  const how = status === 0 ? '' : ` (exit ${status ?? 'none: it did not end'})`;
  const at = status === null ? ` at ${unfinished().join(', ')}` : '';
  results.push({ status, line: `${name.padEnd(16)} ${seconds} s${how}${at}` });
}
skipped.push(...new Set(readFileSync(list, 'utf8').split('\n').filter(Boolean)));
rmSync(folder, { recursive: true });

console.log('\nSkipped:');
for (const line of skipped) console.log(`- ${line}`);
console.log('- platforms: the versions of Node.js in between; node test/package/platforms.mjs has them');
console.log('- test/e2e: needs KUBEBUILDER_ASSETS; test/cluster: needs KUBECONFIG and E2E_IMAGE');
console.log('\nSteps:');
for (const { status, line } of results) console.log(`${status === 0 ? '✓' : '✗'} ${line}`);
process.exitCode = results.every(({ status }) => status === 0) ? 0 : 1;
