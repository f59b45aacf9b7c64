/** Clients whose certificate and CA follow the files: `https.Agent`, undici. */
import { createServer, type Server } from 'node:https';
import { Readable } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { httpsAgent, TlsFiles, undiciDispatcher } from 'resilient-watcher/tls';
import { FormData, request, type Dispatcher } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';

import { createAuthority, createServerPair, type CertificatePair } from '../support/certificates.js';
import { rounds } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { askHttps, keepDoing, listen, repeatable } from '../support/tls-clients.js';
import { secretOf } from '../support/tls-sets.js';

const authority = createAuthority('authority');
const stranger = createAuthority('stranger');
const serverPair = createServerPair(authority);
const clientPairs = Array.from({ length: 4 }, (_, index) =>
  createServerPair(authority, { name: `client-${index}` }),
);
const clientAt = (index: number): CertificatePair =>
  clientPairs[index % clientPairs.length] ?? createServerPair(authority);
const ca = authority.cert;

function openFiles(first: Record<string, string>): { volume: KubeletVolume; files: TlsFiles } {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'tls'));
  volume.publish(first);
  const files = new TlsFiles(volume.directory);
  onTestFinished(() => files.close());
  return { volume, files };
}

interface MutualServer {
  readonly server: Server;
  readonly port: number;
  /** How many connections were made. */
  readonly connections: () => number;
  /** Answers the requests for `/slow`. */
  readonly answerSlow: () => void;
  readonly slow: () => number;
}

/** A server that demands a client certificate and answers with its name and the body of the request. */
async function startMutualServer(pair = serverPair): Promise<MutualServer> {
  let connections = 0;
  const slow: (() => void)[] = [];
  // However long the machine takes between two requests, the server drops no connection.
  const options = { ...pair, ca, requestCert: true, keepAliveTimeout: 0 };
  const server = createServer(options, (request, response) => {
    response.write((request.socket as TLSSocket).getPeerCertificate().subject.CN);
    if (request.url === '/slow') slow.push(() => response.end(' done'));
    else request.pipe(response);
  });
  server.on('secureConnection', () => (connections += 1));
  const port = await listen(server);
  return {
    server,
    port,
    connections: () => connections,
    slow: () => slow.length,
    answerSlow: () => slow.forEach((answer) => answer()),
  };
}

test('an https.Agent presents the current certificate, keeps its connections meanwhile, and resumes no old session', async () => {
  const { volume, files } = openFiles(secretOf(clientAt(0), ca));
  const { port, connections } = await startMutualServer();
  const agent = httpsAgent(files, { keepAlive: true });
  onTestFinished(() => agent.destroy());
  const ask = async (): Promise<string> => (await askHttps({ port, ca }, agent)).text;
  for (let index = 0; index < 20; index += 1) {
    volume.publish(secretOf(clientAt(index), ca));
    await files.check();
    expect([await ask(), await ask(), await ask()]).toEqual(Array(3).fill(`client-${index % 4}`));
  }
  expect(connections()).toBe(20);
  agent.destroy();
  await expect.poll(() => files.listenerCount('change')).toBe(0);
});

test.each([{ maxSockets: 1 }, { maxTotalSockets: 1 }])(
  'requests that wait for a connection of an https.Agent (%j) when the set changes get one of the new set',
  async (limit) => {
    const { volume, files } = openFiles(secretOf(clientAt(0), ca));
    const { port, slow, answerSlow } = await startMutualServer();
    const agent = httpsAgent(files, { keepAlive: true, ...limit });
    onTestFinished(() => agent.destroy());
    await files.start();
    const ask = async (path = '/'): Promise<string> => (await askHttps({ port, ca, path }, agent)).text;
    for (let index = 0; index < 3; index += 1) {
      const inFlight = ask('/slow');
      const waiting = [ask(), ask()];
      await expect.poll(slow).toBe(index + 1);
      volume.publish(secretOf(clientAt(index + 1), ca));
      await files.check();
      waiting.push(ask());
      answerSlow();
      expect(await inFlight).toBe(`client-${index} done`);
      expect(await Promise.all(waiting)).toEqual(Array(3).fill(`client-${index + 1}`));
    }
    // One connection, which is idle.
    await expect.poll(() => [agent.sockets, agent.requests]).toEqual([{}, {}]);
    expect(Object.values(agent.freeSockets).flat()).toHaveLength(1);
  },
);

test('an undici dispatcher has one pool, replaces it with the set, and lets requests in flight finish', async () => {
  const { volume, files } = openFiles(secretOf(clientAt(0), ca));
  const { port, connections, slow, answerSlow } = await startMutualServer();
  const dispatcher = await undiciDispatcher(files, {
    connections: 1,
    keepAliveTimeout: 600_000,
    connect: { servername: 'localhost' },
  });
  const ask = async (path = '/'): Promise<string> => {
    const { body } = await request(`https://127.0.0.1:${port}${path}`, { dispatcher });
    return body.text();
  };
  for (let index = 0; index < 100; index += 1) expect(await ask()).toBe('client-0');
  expect(connections()).toBe(1);

  const inFlight = ask('/slow');
  await expect.poll(slow).toBe(1);
  volume.publish(secretOf(clientAt(1), ca));
  await files.check();
  expect([await ask(), await ask()]).toEqual(['client-1', 'client-1']);
  expect(connections()).toBe(2);
  answerSlow();
  expect(await inFlight).toBe('client-0 done');
  await dispatcher.close();
  expect(files.listenerCount('change')).toBe(0);
});

test('an undici dispatcher refuses a request of a version of undici that it does not understand, and takes those of fetch()', async () => {
  const { files } = openFiles(secretOf(clientAt(0), ca));
  const { port } = await startMutualServer();
  const dispatcher = await undiciDispatcher(files, { connect: { servername: 'localhost' } });
  const origin = `https://127.0.0.1:${port}`;
  expect(() => dispatcher.dispatch({ origin, path: '/', method: 'GET' }, {})).toThrow(/another version/);
  const response = await fetch(origin, { dispatcher } as unknown as RequestInit);
  expect(await response.text()).toBe('client-0');
  await dispatcher.close();
});

/** How `readable-stream` and `form-data` look to undici: a stream, but no `Readable` of Node.js. */
function foreignStream(): Readable {
  return new Proxy(Readable.from(['part']), { getPrototypeOf: () => Object.prototype });
}

function* parts(): Generator<string> {
  yield 'pa';
  yield 'rt';
}

// eslint-disable-next-line @typescript-eslint/require-await -- as a body that is read from somewhere
async function* laterParts(): AsyncGenerator<string> {
  yield* parts();
}

function form(): FormData {
  const data = new FormData();
  data.set('field', 'part');
  return data;
}

describe('a request that waits in an undici dispatcher when a CA is removed', () => {
  type Body = NonNullable<Dispatcher.RequestOptions['body']>;
  interface Waiting {
    readonly dispatcher: Dispatcher;
    readonly origin: string;
    /** Removes the CA, and lets the requests go on that wait for the only connection. */
    readonly removeCa: () => Promise<void>;
  }

  async function waiting(): Promise<Waiting> {
    const { volume, files } = openFiles(secretOf(clientAt(0), `${ca}\n${stranger.cert}`));
    const { port, slow, answerSlow } = await startMutualServer();
    const origin = `https://127.0.0.1:${port}`;
    const dispatcher = await undiciDispatcher(files, {
      connections: 1,
      pipelining: 1,
      connect: { servername: 'localhost' },
    });
    onTestFinished(() => dispatcher.destroy());
    const inFlight = request(`${origin}/slow`, { dispatcher }).then(({ body }) => body.text());
    await expect.poll(slow).toBe(1);
    const removeCa = async (): Promise<void> => {
      volume.publish(secretOf(clientAt(1), ca));
      await files.check();
      answerSlow();
      expect(await inFlight).toBe('client-0 done');
    };
    return { dispatcher, origin, removeCa };
  }

  test.each<[name: string, bodyOf: () => Body, sent: RegExp]>([
    ['a string', () => 'part', /^client-1part$/],
    ['bytes', () => new TextEncoder().encode('part'), /^client-1part$/],
    ['a form', form, /^client-1--[^]+part[^]+--\r\n$/],
    ['a Blob', () => new Blob(['part']) as never, /^client-1part$/],
    ['an array', () => ['pa', 'rt'] as never, /^client-1part$/],
    ['an iterator', () => parts() as never, /^client-1part$/],
    ['an asynchronous iterator', () => laterParts() as never, /^client-1part$/],
    ['a stream of the web', () => new Blob(['part']).stream() as never, /^client-1part$/],
  ])('is sent whole with the new set if its body is %s', async (_name, bodyOf, sent) => {
    const { dispatcher, origin, removeCa } = await waiting();
    const answer = request(origin, { dispatcher, method: 'POST', body: bodyOf() });
    await removeCa();
    expect(await (await answer).body.text()).toMatch(sent);
  });

  test.each<[name: string, bodyOf: () => Body]>([
    ['of Node.js', () => Readable.from(['part'])],
    ['of a package', foreignStream],
  ])('fails if its body is a stream %s, and is not sent', async (_name, bodyOf) => {
    const { dispatcher, origin, removeCa } = await waiting();
    const refused = expect(request(origin, { dispatcher, method: 'POST', body: bodyOf() })).rejects;
    const isRefused = refused.toMatchObject({ code: 'ERR_TLS_CA' });
    await removeCa();
    await isRefused;
  });

  test('is sent with the new set if it is one of fetch(), also with a stream', async () => {
    const { dispatcher, origin, removeCa } = await waiting();
    const body = new Blob(['part']).stream();
    const options = { dispatcher, method: 'POST', body, duplex: 'half' };
    const answer = fetch(origin, options as unknown as RequestInit);
    await removeCa();
    expect(await (await answer).text()).toBe('client-1part');
  });

  test('is not sent if it was aborted', async () => {
    const { dispatcher, origin, removeCa } = await waiting();
    const aborting = new AbortController();
    const refused = expect(request(origin, { dispatcher, signal: aborting.signal })).rejects;
    const isRefused = refused.toThrow('given up');
    aborting.abort(new Error('given up'));
    await removeCa();
    await isRefused;
  });
});

test('no request of many clients is lost when a CA is removed repeatedly, by httpsAgent and undici', async () => {
  const { port } = await startMutualServer();
  const both = `${ca}\n${stranger.cert}`;
  const { volume, files } = openFiles(secretOf(clientAt(0), both));
  const agent = httpsAgent(files, { keepAlive: true });
  onTestFinished(() => agent.destroy());
  const dispatcher = await undiciDispatcher(files, { connect: { servername: 'localhost' } });
  onTestFinished(() => dispatcher.destroy());
  const asks = [
    () => repeatable(async () => (await askHttps({ port, ca }, agent)).text),
    async () => (await request(`https://127.0.0.1:${port}`, { dispatcher })).body.text(),
  ];
  const failures: unknown[] = [];
  const load = Array.from({ length: rounds(12, 51) }, (_, index) =>
    keepDoing(async () => asks[index % 2]?.().catch((error: unknown) => void failures.push(error))),
  );
  const everyoneServed = async (): Promise<void> => {
    const before = load.map(({ results }) => results.length);
    const isServed = () => load.every(({ results }, index) => results.length > (before[index] ?? 0) + 1);
    await expect.poll(isServed).toBe(true);
  };
  for (let removal = 1; removal <= rounds(2, 10); removal += 1) {
    for (const bundle of [ca, both]) {
      await everyoneServed();
      volume.publish(secretOf(clientAt(removal), bundle));
      await files.check();
    }
  }
  await everyoneServed();
  await Promise.all(load.map(({ stop }) => stop()));
  expect(failures).toEqual([]);
});

test('invalid arguments are refused immediately', async () => {
  const { volume } = openFiles(secretOf(serverPair, ca));
  const bundle = new TlsFiles({ ca: volume.path('ca.crt') });
  onTestFinished(() => bundle.close());
  await expect(undiciDispatcher(bundle, { connect: () => {} })).rejects.toThrow(TypeError);
  // What waits behind a request in flight could be taken back only together with it.
  await expect(undiciDispatcher(bundle, { pipelining: 2 })).rejects.toThrow(TypeError);
});
