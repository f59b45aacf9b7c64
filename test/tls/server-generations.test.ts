/** What the library must not change in a server, and what ends when a CA is removed, for each kind of connection. */
import { once } from 'node:events';
import { createSecureServer, type ClientHttp2Session, type Http2SecureServer } from 'node:http2';
import { Agent, createServer, Server } from 'node:https';
import type { Duplex } from 'node:stream';
import { join } from 'node:path';
import { connect, createServer as createTlsServer, type TLSSocket } from 'node:tls';

import { CertificateSigner, type IssuedCertificate } from '@resilient-watcher/local-api-server';
import { KubeletVolume } from 'resilient-watcher/testing';
import { serveTls, TlsFiles } from 'resilient-watcher/tls';
import { describe, expect, onTestFinished, test } from 'vitest';

import { rounds } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { askHttp2, askHttps, keepDoing, listen, openHttp2, repeatable } from '../support/tls-clients.js';

const signer = new CertificateSigner({ name: 'root' });
const leaving = new CertificateSigner({ name: 'leaving' });
const own = signer.issue({ dnsNames: ['localhost'] });
const client = signer.issue({ commonName: 'client' });
const both = `${signer.certificate}${leaving.certificate}`;

function mount({ bundle }: IssuedCertificate): { files: TlsFiles; trust: (ca: string) => Promise<void> } {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'credentials'));
  const publish = (ca: string): void => void volume.publish({ 'bundle.pem': bundle, 'ca.pem': ca });
  publish(both);
  const files = new TlsFiles({ bundle: volume.path('bundle.pem'), ca: volume.path('ca.pem') });
  onTestFinished(() => files.close());
  return {
    files,
    trust: async (ca) => {
      publish(ca);
      await files.check();
    },
  };
}

const secure = { requestCert: true, cert: own.chain, key: own.key, ca: both } as const;

/** Without a client certificate the handshake fails, so each connection presents one. */
const dial = (port: number, ALPNProtocols?: string[]): TLSSocket =>
  connect({
    port,
    host: '127.0.0.1',
    servername: 'localhost',
    ca: signer.certificate,
    cert: client.chain,
    key: client.key,
    ...(ALPNProtocols && { ALPNProtocols }),
  });

/** Everything that the server says until it closes the connection, or until `isEnough`. */
async function said(socket: Duplex, isEnough: (text: string) => boolean = () => false): Promise<string> {
  let text = '';
  socket.on('error', () => {});
  const closed = once(socket, 'close');
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
    if (isEnough(text)) socket.destroy();
  });
  await closed;
  return text.replace(/Date: .*\r\n/, '');
}

const EVENTS = [
  'checkContinue',
  'checkExpectation',
  'clientError',
  'connect',
  'connection',
  'error',
  'newSession',
  'OCSPRequest',
  'request',
  'resumeSession',
  'secureConnection',
  'session',
  'sessionError',
  'stream',
  'timeout',
  'tlsClientError',
  'unknownProtocol',
  'upgrade',
];

const SERVERS: readonly (readonly [string, () => Server | Http2SecureServer])[] = [
  ['HTTP/1', () => createServer(secure, (request, response) => response.end(request.headers.expect))],
  ['HTTP/2 with streams', () => withStreams(createSecureServer(secure))],
  ['HTTP/2 with streams, and HTTP/1', () => withStreams(createSecureServer({ ...secure, allowHTTP1: true }))],
  ['HTTP/2 with requests', () => createSecureServer(secure, (_request, response) => response.end('hello'))],
];

function withStreams(server: Http2SecureServer): Http2SecureServer {
  return server.on('stream', (stream) => {
    stream.respond({ ':status': 200 }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ sum: '1' }));
    stream.end('hello');
  });
}

/** What a server answers to requests that few clients make. */
async function oddAnswers(server: Server | Http2SecureServer): Promise<unknown> {
  server.on('sessionError', () => {}).on('clientError', (_error, socket: Duplex) => socket.destroy());
  const port = await listen(server);
  const raw = async (question: string, protocols?: string[]): Promise<string> => {
    const socket = dial(port, protocols);
    socket.write(question);
    return said(socket);
  };
  const end = 'Host: localhost\r\nConnection: close\r\n\r\n';
  const answers: unknown[] = [];
  if (!('updateSettings' in server) || server.listenerCount('stream') === 0) {
    answers.push(
      await raw(`GET / HTTP/1.1\r\n${end}`),
      await raw(`GET / HTTP/1.1\r\nExpect: x\r\n${end}`),
      await raw(`POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 0\r\n${end}`),
      await raw(`CONNECT localhost:1 HTTP/1.1\r\n${end}`),
    );
  }
  if ('updateSettings' in server) {
    const session = await openHttp2({ port, ca: signer.certificate, cert: client.chain, key: client.key });
    for (const headers of [{}, { expect: 'x' }, { expect: '100-continue' }]) {
      const request = session.request({ ':path': '/', ...headers }).setEncoding('utf8');
      const events: string[] = [];
      for (const event of ['continue', 'response', 'trailers']) request.on(event, () => events.push(event));
      request.on('error', (error: Error) => events.push(error.message));
      let text = '';
      request.on('data', (chunk) => (text += String(chunk)));
      await once(request, 'close');
      answers.push([text, events]);
    }
    session.destroy();
  }
  return { answers, listeners: EVENTS.map((event) => [event, server.listenerCount(event)]) };
}

test.each(SERVERS)(
  'a server of %s answers odd requests as it does without the library',
  async (_name, create) => {
    const { files } = mount(own);
    const served = create();
    await serveTls(served, files);
    expect(await oddAnswers(served)).toEqual(await oddAnswers(create()));
  },
);

test('listeners are called on the server, to which its sockets belong', async () => {
  const { files } = mount(own);
  const tls = createTlsServer({ requestCert: true });
  await serveTls(tls, files);
  const seen: [string, unknown, unknown][] = [];
  for (const event of ['connection', 'secureConnection'] as const) {
    tls.on(event, function (this: unknown, socket: TLSSocket & { readonly server?: unknown }) {
      seen.push([event, this === tls, socket.server === tls]);
      if (event === 'secureConnection') socket.end();
    });
  }
  await said(dial(await listen(tls)));
  expect(seen).toEqual([
    ['connection', true, true],
    ['secureConnection', true, true],
  ]);
});

test('tracing that replaces emit() of the prototype later, or of the server before or after, sees all events', async () => {
  const { files } = mount(own);
  class Traced extends Server {}
  const seen = new Set<string>();
  const trace = (where: object, name: string): void => {
    const { emit } = where as Server;
    const traced = function (this: Server, event: string, ...args: unknown[]): boolean {
      if (event === 'request') seen.add(name);
      return Reflect.apply(emit, this, [event, ...args]) as boolean;
    };
    Object.defineProperty(where, 'emit', { value: traced, configurable: true, writable: true });
  };
  const before = new Traced({ requestCert: true });
  const after = new Traced({ requestCert: true });
  for (const server of [before, after]) server.on('request', (_request, response) => response.end('hello'));
  trace(before, 'before');
  await serveTls(before, files);
  await serveTls(after, files);
  trace(after, 'after');
  trace(Traced.prototype, 'prototype');
  const trusted = { ca: signer.certificate, cert: client.chain, key: client.key };
  for (const server of [before, after]) await askHttps({ port: await listen(server), ...trusted });
  expect([...seen].sort()).toEqual(['after', 'before', 'prototype']);
});

describe('when a CA is removed', () => {
  test('a peer of plain TLS that does not read cannot keep its connection', async () => {
    const { files, trust } = mount(own);
    const tls = createTlsServer({ requestCert: true }, (socket) => {
      socket.on('error', () => {});
      // More than any buffer in between takes.
      socket.write(Buffer.alloc(64_000_000));
    });
    await serveTls(tls, files);
    const port = await listen(tls);
    const accepted = once(tls, 'secureConnection') as Promise<[TLSSocket]>;
    const peer = dial(port);
    onTestFinished(() => void peer.destroy());
    peer.on('error', () => {});
    const [socket] = await accepted;
    const ended = once(socket, 'close');
    await trust(signer.certificate);
    await ended;
  });

  test('an upgraded connection and a tunnel end at once', async () => {
    const { files, trust } = mount(own);
    const https = createServer({ requestCert: true });
    const answer = 'HTTP/1.1 101 Switching Protocols\r\n\r\n';
    https.on('upgrade', (_request, socket: Duplex) => socket.on('error', () => {}).write(answer));
    https.on('connect', (_request, socket: Duplex) => socket.on('error', () => {}).write(answer));
    await serveTls(https, files);
    const port = await listen(https);
    const sockets = ['GET / HTTP/1.1\r\nUpgrade: x\r\nConnection: Upgrade', 'CONNECT a:1 HTTP/1.1'].map(
      (line) => {
        const socket = dial(port).on('error', () => {});
        socket.write(`${line}\r\nHost: a\r\n\r\n`);
        return socket;
      },
    );
    await Promise.all(sockets.map((socket) => once(socket, 'data')));
    const ended = sockets.map((socket) => once(socket, 'close'));
    await trust(signer.certificate);
    await Promise.all(ended);
  });

  test('requests that a client has sent behind the one in flight are not begun', async () => {
    const { files, trust } = mount(own);
    const begun: (string | undefined)[] = [];
    const answers: (() => void)[] = [];
    const https = createServer({ requestCert: true }, ({ url }, response) => {
      begun.push(url);
      answers.push(() => response.end('answer'));
    });
    await serveTls(https, files);
    const socket = dial(await listen(https));
    const ask = (path: string): boolean => socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    ask('/first');
    await expect.poll(() => begun).toEqual(['/first']);
    const text = said(socket);
    await trust(signer.certificate);
    ask('/second');
    answers[0]?.();
    expect(await text).toMatch(/Connection: close[\s\S]*answer/);
    expect(begun).toEqual(['/first']);
  });

  test('a handshake on a Unix socket that began before is not used, and one after it is', async () => {
    const { files, trust } = mount(own);
    const tls = createTlsServer({ requestCert: true }, (socket) => socket.on('error', () => {}).end('hello'));
    await serveTls(tls, files);
    const path = join(temporaryDirectory(), 's');
    tls.listen(path);
    await once(tls, 'listening');
    onTestFinished(() => void tls.close());
    const open = (): TLSSocket =>
      connect({ path, servername: 'localhost', ca: signer.certificate, cert: client.chain, key: client.key });
    const accepted = once(tls, 'connection');
    const earlier = said(open());
    await accepted;
    await trust(signer.certificate);
    expect([await earlier, await said(open())]).toEqual(['', 'hello']);
  });

  test('no request of many trusted clients is lost when a CA is removed repeatedly, by HTTP/1 and HTTP/2', async () => {
    const { files, trust } = mount(own);
    const https = createServer({ requestCert: true, keepAliveTimeout: 0 }, (_request, response) =>
      response.end('hello'),
    );
    const http2 = createSecureServer({ requestCert: true }, (_request, response) => response.end('hello'));
    await serveTls(https, files);
    await serveTls(http2, files);
    const [httpsPort, http2Port] = [await listen(https), await listen(http2)];
    const trusted = { ca: signer.certificate, cert: client.chain, key: client.key };
    const failures: unknown[] = [];
    const load = (ask: () => Promise<string>) =>
      keepDoing(() => ask().catch((error: unknown) => void failures.push(error)));
    const byHttp1 = () => {
      const agent = new Agent({ keepAlive: true });
      onTestFinished(() => agent.destroy());
      return load(() =>
        repeatable(async () => (await askHttps({ port: httpsPort, ...trusted }, agent)).text),
      );
    };
    const byHttp2 = () => {
      let session: ClientHttp2Session | undefined;
      const ask = async (): Promise<string> => {
        if (!session || session.closed || session.destroyed)
          session = await openHttp2({ port: http2Port, ...trusted });
        return askHttp2(session).catch((error: unknown) => {
          // Refused before it was begun, because GOAWAY was on its way.
          if (!/GOAWAY|REFUSED_STREAM|session has been destroyed/.test(String(error))) throw error;
          return 'hello';
        });
      };
      // A handshake that had begun before the CA was removed is not served.
      return load(() => repeatable(ask));
    };
    const count = rounds(12, 50);
    const clients = Array.from({ length: count }, (_, index) => [byHttp1, byHttp2][index % 2]?.());
    /** Until each client has connected again. */
    const everyoneServed = async (): Promise<void> => {
      const before = clients.map((one) => one?.results.length ?? 0);
      const isServed = () =>
        clients.every((one, index) => (one?.results.length ?? 0) > (before[index] ?? 0) + 1);
      await expect.poll(isServed).toBe(true);
    };
    for (let removal = 0; removal < rounds(2, 10); removal += 1) {
      await everyoneServed();
      await trust(signer.certificate);
      await everyoneServed();
      await trust(both);
    }
    const answers = (await Promise.all(clients.map(async (one) => one?.stop()))).flat();
    expect(failures).toEqual([]);
    expect(new Set(answers)).toEqual(new Set(['hello']));
  });
});
