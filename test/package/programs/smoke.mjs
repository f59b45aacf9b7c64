// What every platform has to manage with the installed package. Prints "ok <runtime>"; prints what is wrong and exits with 1.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createSecureServer } from 'node:http2';
import { createServer as createHttps, get } from 'node:https';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const require = createRequire(import.meta.url);
const { exports } = require('resilient-watcher/package.json');

for (const path of Object.keys(exports).filter((path) => !path.endsWith('.json'))) {
  const name = path.replace(/^\./, 'resilient-watcher');
  const imported = await import(name);
  assert.ok(Object.keys(imported).length > 0, `${name} exports nothing`);
  const required = require(name);
  for (const [key, value] of Object.entries(imported)) {
    if (key !== 'module.exports' && key !== 'default') {
      assert.equal(required[key], value, `${name}: require() gives another ${key}`);
    }
  }
}

const { AtomicVolume, atomicWriteFile, readVolume, ResilientWatcher } = await import('resilient-watcher');
const { ConfigLoader } = await import('resilient-watcher/config');
const { KubeletVolume } = await import('resilient-watcher/testing');

const directory = mkdtempSync(join(tmpdir(), 'smoke-'));
try {
  const volume = new KubeletVolume(join(directory, 'mount'));
  volume.publish({ 'app.json': '{"n":0}' });
  const watcher = new ResilientWatcher(volume.path('app.json'));
  const seen = [];
  watcher.on('change', ({ current }) => {
    seen.push(JSON.parse(String(current.content)).n);
    if (seen.at(-1) < 20) volume.publish({ 'app.json': `{"n":${seen.at(-1) + 1}}` });
    else void watcher.close();
  });
  await watcher.start();
  const deadline = Date.now() + 60_000;
  while (seen.at(-1) !== 20 && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.deepEqual(seen, [...Array(21).keys()], 'each update is reported once');

  const { files } = await readVolume(join(directory, 'mount'));
  assert.deepEqual([...files.keys()], ['app.json']);

  // Node's permission model has no fsync, fchmod and fchown.
  const file = join(directory, 'state');
  const durability = process.permission ? 'none' : 'full';
  await atomicWriteFile(file, 'old', { durability });
  await atomicWriteFile(file, 'new', { durability });
  assert.equal(readFileSync(file, 'utf8'), 'new');
  if (!process.permission) {
    const mine = new AtomicVolume(join(directory, 'mine'), { createDirectory: true });
    await mine.write({ a: '1', b: '2' });
    assert.deepEqual([...(await mine.read()).files.keys()].sort(), ['a', 'b']);
  }

  // From Node.js 26 on, --permission is about the network, too.
  if (process.allowedNodeEnvironmentFlags.has('--allow-net') && process.permission?.has('net') === false) {
    console.log('ok without the network');
    process.exit();
  }
  const { TlsFiles, serveTls } = await import('resilient-watcher/tls');
  /** The authority, and one bundle for each set, from whoever has copied this program. */
  const { ca, bundles } = require('./certificates.json');
  const credentials = new KubeletVolume(join(directory, 'credentials'));
  const tls = new TlsFiles({ bundle: join(credentials.directory, 'bundle.pem') });
  const renew = async () => {
    credentials.publish({ 'bundle.pem': bundles.pop() });
    await tls.check();
  };
  await renew();
  // Bun's server of node:https cannot change its certificate, its server of node:http2 can.
  const onBun = 'bun' in process.versions;
  if (onBun)
    await assert.rejects(serveTls(createHttps(), tls), /http2\.createSecureServer\(\{ allowHTTP1: true \}\)/);
  const answer = (_request, response) => response.end('hello');
  const server = onBun ? createSecureServer({ allowHTTP1: true }, answer) : createHttps(answer);
  await serveTls(server, tls);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const shown = () =>
    new Promise((resolve, reject) => {
      const options = {
        host: '127.0.0.1',
        port: server.address().port,
        servername: 'localhost',
        ca,
      };
      get({ ...options, agent: false }, (response) => {
        resolve(response.socket.getPeerCertificate().serialNumber);
        response.resume();
      }).on('error', reject);
    });
  for (let rotation = 0; rotation < 2; rotation += 1) {
    await renew();
    assert.equal(await shown(), tls.current.certificate.serialNumber);
  }
  server.close();
  await tls.close();

  const loader = new ConfigLoader({ sources: [{ values: { level: 'info' } }] });
  assert.deepEqual(await loader.load(), { level: 'info' });
  await loader.close();
} finally {
  rmSync(directory, { recursive: true });
}
const { bun, deno, node } = process.versions;
console.log(`ok ${bun ? `bun ${bun}` : deno ? `deno ${deno}` : `node ${node}`}`);
