/**
 * Prints the files of `src` and the functions that one change runs through, from the event of the kernel to the listener;
 * or one write, from the call to its end:
 *
 *   node tools/walk.mjs key | config | certificate | write [folder of another clone]
 *
 * Each file is compiled by itself, so that V8 counts by file. Of ten changes the shortest way counts: in the others, a second
 * event of the same change came in between.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { tmpdir } from 'node:os';
import { join, resolve, sep } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { createServer } from 'node:tls';
import { pathToFileURL } from 'node:url';

import { build } from 'esbuild';

const CHANGES = 10;
/** Longer than timestamps are too new to stand for contents. */
const QUIET_MS = 2_500;

const [way, root = '.'] = process.argv.slice(2);
const src = resolve(root, 'src');
const out = mkdtempSync(join(tmpdir(), 'walk-'));
process.once('exit', () => rmSync(out, { recursive: true }));

const entryPoints = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => join(src, file));
await build({ entryPoints, outdir: join(out, 'src'), outbase: src, format: 'esm', target: 'node20' });
writeFileSync(join(out, 'package.json'), '{ "type": "module" }');
symlinkSync(resolve('node_modules'), join(out, 'node_modules'));

const entry = (name) => import(pathToFileURL(join(out, 'src', `${name}.js`)).href);
const { KubeletVolume } = await entry('testing');
const volume = new KubeletVolume(join(out, 'volume'));
let publish = (level) => volume.publish({ 'app.json': JSON.stringify({ log: { level } }) });
publish('first');

const pair = () => {
  const [key, certificate] = ['key.pem', 'certificate.pem'].map((name) => join(out, name));
  const kind = [
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-noenc',
    '-subj',
    '/CN=localhost',
  ];
  execFileSync('openssl', ['req', ...kind, '-keyout', key, '-out', certificate], { stdio: 'ignore' });
  return {
    'tls.key': readFileSync(key),
    'tls.crt': readFileSync(certificate),
    'ca.crt': readFileSync(certificate),
  };
};

/** Starts what is measured. Calls back at the end of the way. */
const WAYS = {
  key: async (reached) => {
    const { ResilientWatcher } = await entry('index');
    const watcher = new ResilientWatcher(volume.path('app.json'));
    await watcher.start();
    watcher.on('change', reached);
    return watcher;
  },
  config: async (reached) => {
    const { ConfigLoader, FileProvider } = await entry('config');
    const loader = new ConfigLoader({ sources: [{ provider: new FileProvider(volume.path('app.json')) }] });
    await loader.load();
    loader.select(({ log }) => log.level, reached);
    return loader;
  },
  certificate: async (reached) => {
    const { serveTls, TlsFiles } = await entry('tls');
    publish = () => volume.publish(pair());
    publish();
    const files = new TlsFiles(join(out, 'volume'), { persistent: true });
    const server = createServer();
    await serveTls(server, files);
    const { setSecureContext } = server;
    server.setSecureContext = (options) => {
      setSecureContext.call(server, options);
      reached();
    };
    return files;
  },
  write: async (reached) => {
    const { atomicWriteFile } = await entry('index');
    // In a later turn: what the publisher runs through does not count.
    publish = (level) => setImmediate(() => atomicWriteFile(join(out, 'written'), level).then(reached));
    return { close: () => undefined };
  },
};

const profiler = new Session();
profiler.connect();
profiler.post('Profiler.enable');
profiler.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
let take = () => undefined;
const component = await WAYS[way](() => take());
/** The functions that were called since the last time, by file. The answer comes before `post` returns. */
const called = () => {
  const files = new Map();
  profiler.post('Profiler.takePreciseCoverage', (_, { result }) => {
    for (const { url, functions } of result) {
      const [, file] = url.split(pathToFileURL(join(out, 'src') + sep).href);
      const ran = functions.filter(({ ranges }) => ranges[0].count > 0);
      if (file && !file.startsWith('testing/') && ran.length > 0) files.set(file, ran);
    }
  });
  return files;
};
const sizeOf = (files) => [...files.values()].reduce((sum, functions) => sum + functions.length, 0);

const walks = [];
for (let change = 0; change <= CHANGES; change += 1) {
  const reached = new Promise((done) => {
    take = () => done(called());
  });
  await setTimeout(QUIET_MS);
  publish(`level ${change}`);
  called();
  walks.push(await reached);
}
await component.close();
// The first change runs what runs once.
const [shortest] = walks.slice(1).sort((a, b) => sizeOf(a) - sizeOf(b));
for (const [file, functions] of [...shortest].sort(([a], [b]) => a.localeCompare(b))) {
  const names = functions.map(({ functionName }) => functionName || '·').join(' ');
  console.log(`${file.replace(/\.js$/, '.ts').padEnd(32)} ${String(functions.length).padStart(2)}  ${names}`);
}
console.log(`${way}: ${shortest.size} files, ${sizeOf(shortest)} functions`);
