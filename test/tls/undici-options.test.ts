/** `undiciDispatcher()` takes the options of undici's `Agent`, and emits its events. */
import { once, type EventEmitter } from 'node:events';
import { createSecureServer } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import { createServer } from 'node:net';
import { join } from 'node:path';

import { CertificateSigner } from '@resilient-watcher/local-api-server';
import { KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import { TlsFiles, undiciDispatcher } from 'resilient-watcher/tls';
import { request, type Agent, type Dispatcher } from 'undici';
import { expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';
import { listen } from '../support/tls-clients.js';

const root = new CertificateSigner({ name: 'root' });
const other = new CertificateSigner({ name: 'other' });
const { chain: cert, key } = root.issue({ dnsNames: ['localhost'] });

interface Scene {
  readonly dispatcher: Dispatcher;
  readonly files: TlsFiles;
  readonly publish: (ca: string) => Promise<void>;
}

async function scene(options?: Agent.Options): Promise<Scene> {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'tls'));
  volume.publish({ 'ca.crt': root.certificate });
  const ca = volume.path('ca.crt');
  const files = new TlsFiles({ ca }, { backend: new ScriptedBackend(), resyncIntervalMs: 0 });
  onTestFinished(() => files.close());
  const dispatcher = await undiciDispatcher(files, options);
  onTestFinished(() => dispatcher.destroy());
  const publish = async (bundle: string): Promise<void> => {
    volume.publish({ 'ca.crt': bundle });
    await files.check();
  };
  return { dispatcher, files, publish };
}

async function serve(): Promise<number> {
  return listen(createHttpsServer({ cert, key }, (_request, response) => response.end('hello')));
}

async function textOf(url: string, dispatcher: Dispatcher): Promise<string> {
  return (await request(url, { dispatcher })).body.text();
}

test('connectTimeout ends a handshake that is never answered', async () => {
  const silent = createServer();
  const port = await listen(silent);
  const { dispatcher } = await scene({ connectTimeout: 50 });
  await expect(textOf(`https://localhost:${port}/`, dispatcher)).rejects.toMatchObject({
    code: 'UND_ERR_CONNECT_TIMEOUT',
  });
});

test.each<[name: string, options: (path: string) => Agent.Options]>([
  ['socketPath', (socketPath) => ({ socketPath })],
  ['connect.socketPath', (socketPath) => ({ connect: { socketPath } })],
  ['socketPath before a change', (socketPath) => ({ socketPath, connections: 1 })],
])('%s leads to a socket of the file system, also after a change', async (_name, options) => {
  const path = join(temporaryDirectory(), 's');
  const server = createHttpsServer({ cert, key }, (_request, response) => response.end('local')).listen(path);
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { dispatcher, publish } = await scene(options(path));
  expect(await textOf('https://localhost:1/', dispatcher)).toBe('local');
  await publish(root.certificate + other.certificate);
  expect(await textOf('https://localhost:1/', dispatcher)).toBe('local');
});

test('allowH2 speaks HTTP/2', async () => {
  const options = { cert, key, allowHTTP1: true };
  const server = createSecureServer(options, ({ httpVersion }, response) => response.end(httpVersion));
  const port = await listen(server);
  const url = `https://localhost:${port}/`;
  expect(await textOf(url, (await scene({ allowH2: true })).dispatcher)).toBe('2.0');
  expect(await textOf(url, (await scene({ allowH2: false })).dispatcher)).toBe('1.1');
});

test('maxCachedSessions 0 resumes no session', async () => {
  let resumed = 0;
  const server = createHttpsServer({ cert, key }, (_request, response) =>
    response.setHeader('connection', 'close').end('hello'),
  );
  server.on('secureConnection', (socket) => (resumed += Number(socket.isSessionReused())));
  const url = `https://localhost:${await listen(server)}/`;
  const { dispatcher } = await scene({ maxCachedSessions: 0 });
  for (let count = 0; count < 3; count += 1) await textOf(url, dispatcher);
  expect(resumed).toBe(0);
});

/** Sends requests until `dispatch()` says that too many wait. Resolves when all of them are answered. */
async function fill(dispatcher: Dispatcher, origin: string, count = 2): Promise<boolean[]> {
  const results: boolean[] = [];
  const answers = Array.from({ length: count }, async () => {
    await new Promise<void>((resolve, reject) => {
      const handler: Dispatcher.DispatchHandler = {
        onRequestStart() {},
        onResponseStart() {},
        onResponseData() {},
        onResponseEnd: () => resolve(),
        onResponseError: (_controller, error) => reject(error),
      };
      results.push(dispatcher.dispatch({ origin, path: '/', method: 'GET' }, handler));
    });
  });
  await Promise.all(answers);
  return results;
}

test('drain follows when dispatch() has said false; connect and disconnect are emitted, with the dispatcher first', async () => {
  const port = await serve();
  const { dispatcher } = await scene({ connections: 1 });
  const events: string[] = [];
  const targets: unknown[] = [];
  for (const event of ['connect', 'drain', 'disconnect'] as const) {
    (dispatcher as EventEmitter).on(event, (origin: URL, [first]: readonly Dispatcher[]) => {
      events.push(`${event} ${origin.port === String(port)}`);
      targets.push(first);
    });
  }
  const drained = once(dispatcher, 'drain');
  expect(await fill(dispatcher, `https://localhost:${port}`)).toContain(false);
  await drained;
  await dispatcher.close();
  expect(events).toContain('connect true');
  expect(events).toContain('drain true');
  expect(targets.every((target) => target === dispatcher)).toBe(true);
});

test('connectionError is emitted, as by an Agent', async () => {
  const { dispatcher, publish } = await scene();
  await publish(other.certificate);
  const failed = once(dispatcher, 'connectionError');
  await expect(textOf(`https://localhost:${await serve()}/`, dispatcher)).rejects.toThrow();
  await failed;
});

test('drain follows also if the set changes meanwhile, and the requests wait in a pool that is over', async () => {
  const server = createHttpsServer({ cert, key });
  const port = await listen(server);
  const { dispatcher, publish } = await scene({ connections: 1 });
  const answered = fill(dispatcher, `https://localhost:${port}`, 3);
  const drained = once(dispatcher, 'drain');
  await publish(root.certificate + other.certificate);
  await drained;
  server.on('request', (_request, response) => response.end('hello'));
  server.closeAllConnections();
  await answered.catch(() => {});
});

test('close() resolves, also when it is called twice, and after destroy()', async () => {
  const { dispatcher, publish } = await scene();
  await textOf(`https://localhost:${await serve()}/`, dispatcher);
  await publish(root.certificate + other.certificate);
  await Promise.all([dispatcher.close(), dispatcher.close()]);
  await dispatcher.destroy();
  await dispatcher.close();
});
