/** A CA is removed: what a connection of an earlier generation still brings, and whom it may not hold up. */
import { execFileSync } from 'node:child_process';
import { constants, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createSecureServer } from 'node:http2';
import { createServer, type Server, type ServerOptions } from 'node:https';
import { connect as connectTcp, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { connect, createServer as createTlsServer, type Server as TlsServer, type TLSSocket } from 'node:tls';

import { CertificateSigner } from '@resilient-watcher/local-api-server';
import { FakeClock, KubeletVolume } from 'resilient-watcher/testing';
import { serveTls, TlsFiles, undiciDispatcher } from 'resilient-watcher/tls';
import { request } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';

import { heldTimers } from '../support/held-timers.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { listen } from '../support/tls-clients.js';

const [root, leaving] = [new CertificateSigner({ name: 'root' }), new CertificateSigner({ name: 'leaving' })];
const own = root.issue({ dnsNames: ['localhost'] });
const trusted = root.issue({ commonName: 'trusted' });
const leaver = leaving.issue({ commonName: 'leaver' });
const both = `${root.certificate}${leaving.certificate}`;

interface Mounted {
  readonly files: TlsFiles;
  readonly trust: (ca: string) => Promise<void>;
  readonly removeCa: () => Promise<void>;
}

function mount(): Mounted {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'credentials'));
  const publish = (ca: string): void => void volume.publish({ 'bundle.pem': own.bundle, 'ca.pem': ca });
  publish(both);
  const files = new TlsFiles({ bundle: volume.path('bundle.pem'), ca: volume.path('ca.pem') });
  onTestFinished(() => files.close());
  const trust = async (ca: string): Promise<void> => {
    publish(ca);
    await files.check();
  };
  return { files, trust, removeCa: () => trust(root.certificate) };
}

const H2 = ['h2'];
const nameOf = (socket: TLSSocket): string => String(socket.getPeerCertificate().subject.CN);

/** A connection; `socket` is one of TCP that has been accepted. */
function dial(port: number, issued = trusted, socket?: Socket, ALPNProtocols?: string[]): TLSSocket {
  const identity = { servername: 'localhost', ca: root.certificate, cert: issued.chain, key: issued.key };
  const at = socket ? { socket } : { port, host: '127.0.0.1' };
  const dialed = connect({ ...at, ...identity, ...(ALPNProtocols && { ALPNProtocols }) });
  onTestFinished(() => void dialed.destroy());
  return dialed.on('error', () => {});
}

/** A connection that the server has accepted, and in which the handshake has not begun. */
async function accepted(server: TlsServer, port: number): Promise<Socket> {
  const arrived = once(server, 'connection');
  const socket = connectTcp(port, '127.0.0.1').on('error', () => {});
  await arrived;
  return socket;
}

/** All that the server says until the connection has ended. */
async function said(socket: TLSSocket): Promise<string> {
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk) => (text += String(chunk)));
  // `once()` of node:events would reject for an error.
  if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
  return text;
}

const get = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`;

const post = (path: string, bytes: number): string =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${bytes}\r\n\r\n`;

/** An HTTPS server that answers when it is told to. */
async function startHttps({ files }: Mounted, options: ServerOptions = {}, clock = new FakeClock()) {
  const begun: string[] = [];
  const answers = new Map<string, () => void>();
  const server = createServer({ requestCert: true, ...options }, ({ url = '/' }, response) => {
    begun.push(url);
    answers.set(url, () => void response.end(`answer to ${url}`));
  });
  await serveTls(server, files, { clock });
  return {
    server,
    port: await listen(server),
    begun,
    clock,
    answer: (path: string) => answers.get(path)?.(),
  };
}

describe('a handshake that began before', () => {
  test('is told to no listener of a server of plain TLS that reads the certificate of its peer', async () => {
    const mounted = mount();
    const names: string[] = [];
    const tls = createTlsServer({ requestCert: true }, (socket) => {
      names.push(nameOf(socket));
      socket.end('hello');
    });
    await serveTls(tls, mounted.files);
    const port = await listen(tls);
    const socket = await accepted(tls, port);
    await mounted.removeCa();
    expect(await said(dial(port, trusted, socket))).toBe('');
    expect(await said(dial(port))).toBe('hello');
    expect(names).toEqual(['trusted']);
  });

  test('is told to no listener of a session or a secure connection of HTTP/2', async () => {
    const mounted = mount();
    const told: string[] = [];
    const http2 = createSecureServer({ requestCert: true }, (_request, response) => response.end());
    http2.on('session', ({ socket }) => told.push(nameOf(socket as TLSSocket)));
    http2.prependListener('secureConnection', () => told.push('secureConnection'));
    await serveTls(http2, mounted.files);
    const port = await listen(http2);
    const socket = await accepted(http2, port);
    await mounted.removeCa();
    await said(dial(port, trusted, socket, H2));
    expect(told).toEqual([]);
    dial(port, trusted, undefined, H2);
    await expect.poll(() => told).toEqual(['secureConnection', 'trusted']);
  });

  /** A server that keeps its sessions in a store, and the answers of the store, which anyone may deliver. */
  async function startWithStore({ files }: Mounted, onNew = (_deliver: () => void): void => {}) {
    const secureOptions = constants.SSL_OP_NO_TICKET;
    const tls = createTlsServer({ requestCert: true, maxVersion: 'TLSv1.2', secureOptions }, (socket) =>
      socket.end('hello'),
    );
    tls.on('newSession', (_id, _session, done: () => void) => onNew(done));
    tls.on('resumeSession', (_id, done: (error: null, session: null) => void) => done(null, null));
    const served = await serveTls(tls, files);
    return { tls, served, port: await listen(tls) };
  }

  test('is that of its beginning, also if the session store answers over a connection that is older', async () => {
    const mounted = mount();
    const store: (() => void)[] = [];
    const { port } = await startWithStore(mounted, (deliver) => store.push(deliver));
    await mounted.removeCa();
    for (let visit = 0; visit < 3; visit += 1) {
      const answer = said(dial(port));
      await expect.poll(() => store.length).toBe(1);
      store.pop()?.();
      expect(await answer).toBe('hello');
    }
  });

  test('is not admitted, also if the session store answers together with a later one', async () => {
    const mounted = mount();
    const store: (() => void)[] = [];
    let isBatched = false;
    const { port } = await startWithStore(mounted, (deliver) => {
      store.push(deliver);
      if (isBatched) for (const one of store.splice(0)) one();
    });
    const earlier = said(dial(port, leaver));
    await expect.poll(() => store.length).toBe(1);
    await mounted.removeCa();
    isBatched = true;
    expect(await said(dial(port))).toBe('hello');
    expect(await earlier).toBe('');
  });

  test('is not admitted after another serveTls() of the same server, and others are', async () => {
    const mounted = mount();
    const { tls, served, port } = await startWithStore(mounted, (deliver) => deliver());
    const socket = await accepted(tls, port);
    await mounted.removeCa();
    await served.close();
    await serveTls(tls, mounted.files);
    expect(await said(dial(port, leaver, socket))).toBe('');
    expect(await said(dial(port))).toBe('hello');
    await mounted.trust(both);
    await mounted.removeCa();
    expect(await said(dial(port))).toBe('hello');
  });

  test('is not admitted by a server that reads the header of a proxy first', async () => {
    const mounted = mount();
    const tls = createTlsServer({ requestCert: true }, (socket) => socket.end('hello'));
    const begin = tls.listeners('connection') as ((socket: Socket) => void)[];
    tls.removeAllListeners('connection');
    for (const listener of begin) tls.on('header read', listener);
    tls.on('connection', (socket) => void setImmediate(() => tls.emit('header read', socket)));
    await serveTls(tls, mounted.files);
    const port = await listen(tls);
    const read = once(tls, 'header read');
    const socket = await accepted(tls, port);
    await read;
    await mounted.removeCa();
    expect(await said(dial(port, trusted, socket))).toBe('');
    expect(await said(dial(port))).toBe('hello');
  });
});

test('connections end if another serveTls() of the same server trusts a CA less', async () => {
  const [first, second] = [mount(), mount()];
  const tls = createTlsServer(
    { requestCert: true },
    (socket) => void socket.on('error', () => {}).write('x'),
  );
  const served = await serveTls(tls, first.files);
  const peer = dial(await listen(tls), leaver);
  await once(peer, 'data');
  await served.close();
  await second.removeCa();
  const ended = once(peer, 'close');
  await serveTls(tls, second.files);
  await ended;
});

describe('a connection with a response in flight', () => {
  test('finishes it when the end of an upload and a further request come in one packet', async () => {
    const mounted = mount();
    const { port, begun, answer } = await startHttps(mounted);
    const socket = dial(port);
    socket.write(`${post('/upload', 3)}ab`);
    await expect.poll(() => begun).toEqual(['/upload']);
    await mounted.removeCa();
    socket.write(`c${get('/next')}`);
    const text = said(socket);
    // By then the packet has been read.
    await expect.poll(() => socket.bytesWritten).toBeGreaterThan(100);
    await sawEverything(port);
    answer('/upload');
    expect(await text).toMatch(/Connection: close[\s\S]*answer to \/upload$/);
    expect(begun).toEqual(['/upload']);
  });

  test('finishes all that are in flight when further requests come, with a body or without', async () => {
    const mounted = mount();
    const { port, begun, answer } = await startHttps(mounted);
    const socket = dial(port);
    socket.write(`${get('/1')}${post('/2', 3)}ab`);
    await expect.poll(() => begun).toEqual(['/1', '/2']);
    await mounted.removeCa();
    const text = said(socket);
    for (const more of ['c', get('/3'), post('/4', 500_000), Buffer.alloc(500_000), get('/5')]) {
      socket.write(more);
      await sawEverything(port);
    }
    answer('/1');
    // By then the first answer has been sent, and nothing but the second one keeps the connection.
    await sawEverything(port);
    answer('/2');
    expect(await text).toMatch(/answer to \/1[\s\S]*Connection: close[\s\S]*answer to \/2$/);
    expect(begun).toEqual(['/1', '/2']);
  });

  test('is known to have ended as soon as its client leaves, whatever the client has sent', async () => {
    const body = 'x'.repeat(500_000);
    const upgrade = get('/socket', 'Connection: Upgrade\r\nUpgrade: x\r\n');
    for (const more of ['', get('/further'), post('/further', body.length) + body, upgrade + body]) {
      const mounted = mount();
      const { server, port, begun } = await startHttps(mounted);
      const upgrades: unknown[] = [];
      server.on('upgrade', (request) => upgrades.push(request));
      const arrived = once(server, 'secureConnection') as Promise<[TLSSocket]>;
      const socket = dial(port);
      socket.write(get('/'));
      const [onServer] = await arrived;
      await expect.poll(() => begun).toEqual(['/']);
      await mounted.removeCa();
      const ended = once(onServer, 'close');
      socket.end(more);
      // The clock of the server stands: `drainMs` does not pass.
      await ended;
      expect([begun, upgrades]).toEqual([['/'], []]);
    }
  });

  test('is begun once, also if a listener that checks it first has not decided before', async () => {
    const mounted = mount();
    const { server, port, begun, answer } = await startHttps(mounted);
    const checked = once(server, 'checkContinue');
    server.on('checkContinue', () => {});
    const socket = dial(port);
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\r\n');
    const [request, response] = (await checked) as unknown[];
    await mounted.removeCa();
    const text = said(socket);
    server.emit('request', request, response);
    expect(begun).toEqual(['/']);
    answer('/');
    expect(await text).toMatch(/Connection: close[\s\S]*answer to \/$/);
  });

  test('ends at once if it has been upgraded behind it', async () => {
    const mounted = mount();
    const { server, port, begun } = await startHttps(mounted);
    server.on('upgrade', (_request, stream: Duplex) => void stream.on('error', () => {}).resume());
    const upgraded = once(server, 'upgrade') as Promise<[unknown, Duplex]>;
    const socket = dial(port);
    socket.write(`${get('/')}${get('/socket', 'Connection: Upgrade\r\nUpgrade: x\r\n')}`);
    const [, onServer] = await upgraded;
    expect(begun).toEqual(['/']);
    const ended = once(onServer, 'close');
    await mounted.removeCa();
    await ended;
  });

  test('holds up no other if it cannot be told that it is the last one', async () => {
    const mounted = mount();
    const { server, port, clock } = await startHttps(mounted);
    server.prependListener('request', (_request, response) => {
      response.setHeader = () => {
        throw new Error('sealed');
      };
    });
    const inFlight = dial(port);
    inFlight.write(get('/'));
    await once(server, 'request');
    const idle = dial(port);
    await once(server, 'secureConnection');
    const [idleEnd, end] = [once(idle, 'close'), once(inFlight, 'close')];
    await mounted.removeCa();
    await idleEnd;
    await clock.advance(30_000);
    await end;
  });

  test('is counted once when two CAs are removed one after the other', async () => {
    const mounted = mount();
    const third = new CertificateSigner({ name: 'third' }).certificate;
    await mounted.trust(`${both}${third}`);
    const { port, begun } = await startHttps(mounted);
    dial(port).write(get('/'));
    await expect.poll(() => begun).toEqual(['/']);
    const counts: number[] = [];
    mounted.files.on('connectionsEnded', ({ connections }) => counts.push(connections));
    await mounted.trust(both);
    await mounted.removeCa();
    expect(counts).toEqual([1, 0]);
  });

  /** A later connection has been served, so what was sent before it has been read. */
  async function sawEverything(port: number): Promise<void> {
    const later = dial(port);
    await once(later, 'secureConnect');
    later.destroy();
  }
});

test('a connection that is handed to another server ends with the CA of the one that verified its client', async () => {
  const [front, back] = [mount(), mount()];
  const tls = createTlsServer({ requestCert: true });
  const https = createServer({ requestCert: true }, (_request, response) => void response.end('hello'));
  tls.on('secureConnection', (socket) => https.emit('secureConnection', socket));
  await serveTls(tls, front.files);
  const behind = await serveTls(https, back.files);
  onTestFinished(() => behind.close());
  const socket = dial(await listen(tls));
  socket.write(get('/'));
  await once(socket, 'data');
  await back.removeCa();
  socket.write(get('/'));
  await once(socket, 'data');
  const ended = once(socket, 'close');
  await front.removeCa();
  await ended;
});

test('keys of tickets that replicas share survive a renewal, and not the removal of a CA', async () => {
  const mounted = mount();
  const server: Server = createServer({ requestCert: true });
  const served = await serveTls(server, mounted.files);
  onTestFinished(() => served.close());
  const shared = randomBytes(48);
  server.setTicketKeys(shared);
  await mounted.trust(`${both}${new CertificateSigner({ name: 'third' }).certificate}`);
  expect(server.getTicketKeys()).toEqual(shared);
  await mounted.removeCa();
  expect(server.getTicketKeys()).not.toEqual(shared);
  server.setTicketKeys(shared);
  await mounted.trust(both);
  expect(server.getTicketKeys()).toEqual(shared);
});

test('a pfx of the server is refused where clients are verified, because the CAs in it would be trusted too', async () => {
  const directory = temporaryDirectory();
  const at = (name: string, text?: string): string => {
    if (text !== undefined) writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const pair = ['-in', at('chain', own.chain), '-inkey', at('key', own.key)];
  const ca = ['-certfile', at('ca', leaving.certificate), '-passout', 'pass:x', '-out', at('own.pfx')];
  execFileSync('openssl', ['pkcs12', '-export', ...pair, ...ca]);
  const identity = { pfx: readFileSync(at('own.pfx')), passphrase: 'x' };
  const files = new TlsFiles({ ca: at('bundle.pem', root.certificate) });
  onTestFinished(() => files.close());
  await expect(serveTls(createServer({ ...identity, requestCert: true }), files)).rejects.toMatchObject({
    code: 'ERR_TLS_CA',
    message: expect.stringMatching(/has a pfx of its own.*; give createServer\(\) cert and key/) as string,
  });
  const served = await serveTls(createServer(identity), files);
  await served.close();
});

test('a request of undiciDispatcher() that is in flight ends in 30 s, also if the dispatcher has been closed meanwhile', async () => {
  const mounted = mount();
  const { port, begun } = await startHttps(mounted);
  const client = mount();
  const dispatcher = await undiciDispatcher(client.files, { connect: { servername: 'localhost' } });
  onTestFinished(() => dispatcher.destroy());
  const failure = request(`https://127.0.0.1:${port}/`, { dispatcher }).catch((error: unknown) => error);
  await expect.poll(() => begun).toEqual(['/']);
  const closed = dispatcher.close();
  const due = heldTimers();
  await client.removeCa();
  expect(client.files.status().endedConnections).toBe(1);
  for (const callback of due) callback();
  expect(await failure).toBeInstanceOf(Error);
  await expect(request(`https://127.0.0.1:${port}/`, { dispatcher })).rejects.toThrow(/closed|destroyed/);
  await closed;
  expect(client.files.listenerCount('change')).toBe(0);
});
