// `node test/package/platforms.mjs`: the package as it is built, packed, on each runtime that the npm registry brings, with the smoke
// program. Prints a line for each, and what it skipped and why; exits with 1 when one failed. With names, `'Node 26' Bun`: only the
// runtimes whose names begin so.
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { certificates } from './programs/certificates.mjs';

const execute = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const home = mkdtempSync(join(tmpdir(), 'resilient-watcher-platforms-'));
const FLAGS = ['--no-audit', '--no-fund', '--loglevel=error'];

const READ_EVERYTHING = ['--permission', '--allow-fs-read=*', '--allow-fs-write=*'];

/** name, package, its program below node_modules, arguments before the program that is run */
const RUNTIMES = [
  ['Node 20.19.0, the oldest', 'node@20.19.0', 'node/bin/node', []],
  ['Node 20', 'node@20', 'node/bin/node', []],
  ['Node 22.12.0, the oldest', 'node@22.12.0', 'node/bin/node', []],
  ['Node 22', 'node@22', 'node/bin/node', []],
  ['Node 24', 'node@24', 'node/bin/node', []],
  ['Node 24, --permission', 'node@24', 'node/bin/node', READ_EVERYTHING],
  ['Node 26', 'node@26', 'node/bin/node', []],
  ['Node 26, --permission', 'node@26', 'node/bin/node', READ_EVERYTHING],
  ['Bun', 'bun', 'bun/bin/bun.exe', ['run']],
  ['Deno', 'deno', 'deno/deno', ['run', '--allow-all']],
];

const wanted = process.argv.slice(2);
const runtimes = RUNTIMES.filter(
  ([name]) => wanted.length === 0 || wanted.some((start) => name.startsWith(start)),
);
const unknown = wanted.filter((start) => !RUNTIMES.some(([name]) => name.startsWith(start)));
if (unknown.length > 0) throw new Error(`No runtime is called ${unknown.join(', ')}`);

const run = (cwd, command, ...args) => execute(command, args, { cwd, timeout: 240_000 });

/** A folder with an empty package, and what is to be installed in it. */
async function folderWith(name, packages, flags) {
  const folder = join(home, name.replace(/\W+/g, '-'));
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}');
  await run(folder, 'npm', 'install', ...FLAGS, ...flags, ...packages);
  return folder;
}

/** What is wrong with it; undefined when all is well. */
async function faultOf(application, program, args) {
  try {
    const { stdout } = await run(application, program, ...args, join(application, 'smoke.mjs'));
    return /^ok /m.test(stdout) ? undefined : `it printed ${JSON.stringify(stdout)}`;
  } catch (error) {
    return `${error.message}\n${error.stderr ?? ''}`;
  }
}

let failed = 0;
let passed = 0;
let skipped = 0;
try {
  await run(root, 'npm', 'pack', '--ignore-scripts', '--loglevel=error', '--pack-destination', home);
  const tarball = readdirSync(home).find((file) => file.endsWith('.tgz'));
  const application = await folderWith('application', [join(home, tarball)], ['--omit=optional']);
  copyFileSync(join(root, 'test/package/programs/smoke.mjs'), join(application, 'smoke.mjs'));
  writeFileSync(join(application, 'certificates.json'), certificates());

  for (const [name, packageName, program, args] of runtimes) {
    let runtime;
    try {
      // The runtime is put in place by its install script.
      const folder = await folderWith(packageName, [packageName], ['--foreground-scripts']);
      runtime = join(folder, 'node_modules', program);
      await run(folder, runtime, '--version');
    } catch (error) {
      skipped += 1;
      console.log(`- ${name}: skipped, it cannot be had here: ${error.message.split('\n')[0]}`);
      continue;
    }
    const fault = await faultOf(application, runtime, args);
    if (fault === undefined) passed += 1;
    else failed += 1;
    console.log(fault === undefined ? `✓ ${name}` : `✗ ${name}: ${fault}`);
  }
} finally {
  rmSync(home, { recursive: true, force: true });
}
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exitCode = failed > 0 ? 1 : 0;
