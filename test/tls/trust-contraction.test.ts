/** A CA is removed: connections made before end, whoever the peer is, and do not come back by a resumed session. */
import { constants, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { Agent, createServer, globalAgent } from 'node:https';
import { connect as connectTcp, createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { connect, createServer as createTlsServer, type SecureVersion, type TLSSocket } from 'node:tls';

import { CertificateSigner, type IssuedCertificate } from '@resilient-watcher/local-api-server';
import { KubeletVolume } from 'resilient-watcher/testing';
import { httpsAgent, serveTls, TlsFiles, undiciDispatcher } from 'resilient-watcher/tls';
import { request } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';
import { askHttps, listen } from '../support/tls-clients.js';

const [one, two] = [new CertificateSigner({ name: 'one' }), new CertificateSigner({ name: 'two' })];
const both = `${one.certificate}${two.certificate}`;
const server = one.issue({ dnsNames: ['localhost'] });
const below = new CertificateSigner({ name: 'below two', issuer: two });
const leaving = one.issue({ commonName: 'leaving' });
const staying = two.issue({ commonName: 'staying' });
const stayingBelow = below.issue({ commonName: 'staying below' });
const VERSIONS: readonly SecureVersion[] = ['TLSv1.2', 'TLSv1.3'];

interface Mounted {
  readonly files: TlsFiles;
  /** Publishes the trust bundle, beside a credential bundle that stays. */
  readonly trust: (ca: string) => Promise<void>;
}

function mount({ bundle }: IssuedCertificate): Mounted {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'credentials'));
  volume.publish({ 'bundle.pem': bundle, 'ca.pem': both });
  const files = new TlsFiles({ bundle: volume.path('bundle.pem'), ca: volume.path('ca.pem') });
  onTestFinished(() => files.close());
  const trust = async (ca: string): Promise<void> => {
    volume.publish({ 'bundle.pem': bundle, 'ca.pem': ca });
    await files.check();
  };
  return { files, trust };
}

const certificateOf = ({ chain, key }: IssuedCertificate): { cert: string; key: string } => ({
  cert: chain,
  key,
});

describe.each(VERSIONS)('a server that demands client certificates, %s', (version) => {
  const limits = { minVersion: version, maxVersion: version } as const;
  // Without tickets Node.js resumes nothing in TLS 1.3.
  const stores = version === 'TLSv1.2' ? ['tickets', 'a store of the application'] : ['tickets'];

  test('ends idle connections at once and others after the response; who is trusted connects again', async () => {
    const { files, trust } = mount(server);
    const slow: (() => void)[] = [];
    const https = createServer({ requestCert: true, keepAliveTimeout: 0, ...limits }, ({ url }, response) => {
      if (url === '/slow') slow.push(() => response.end('slow'));
      else response.end('hello');
    });
    await serveTls(https, files);
    const port = await listen(https);
    const agentOf = (issued: IssuedCertificate): Agent => {
      const agent = new Agent({ keepAlive: true, ...certificateOf(issued) });
      onTestFinished(() => agent.destroy());
      return agent;
    };
    const ask = (agent: Agent, path = '/') => askHttps({ port, ca: one.certificate, path }, agent);
    const [idle, busy, trusted] = [agentOf(leaving), agentOf(leaving), agentOf(stayingBelow)];
    const idleSockets = [(await ask(idle)).socket, (await ask(trusted)).socket];
    const inFlight = ask(busy, '/slow');
    await expect.poll(() => slow.length).toBe(1);

    const idleEnd = idleSockets.map((socket) => once(socket, 'close'));
    await trust(two.certificate);
    await Promise.all(idleEnd);
    slow[0]?.();
    const { socket, text } = await inFlight;
    expect(text).toBe('slow');
    if (!socket.destroyed) await once(socket, 'close');
    await expect(ask(agentOf(leaving))).rejects.toThrow();
    await expect(ask(trusted)).resolves.toMatchObject({ text: 'hello' });
    expect(files.status().endedConnections).toBe(3);
    await trust(both);
    await expect(ask(agentOf(leaving))).resolves.toMatchObject({ text: 'hello' });
  });

  test.each(stores)('resumes no session of them from %s', async (kind) => {
    const { files, trust } = mount(server);
    // With tickets the store is not asked.
    const secureOptions = kind === 'tickets' ? 0 : constants.SSL_OP_NO_TICKET;
    const tls = createTlsServer(
      { requestCert: true, secureOptions, ...limits, ticketKeys: randomBytes(48) },
      (socket) => void socket.end('hello'),
    );
    tls.on('tlsClientError', () => {});
    if (kind !== 'tickets') keepSessions(tls);
    await serveTls(tls, files);
    const port = await listen(tls);
    const visit = async (issued: IssuedCertificate, session?: Buffer): Promise<Visit> => {
      const credentials = session ? {} : certificateOf(issued);
      const options = { port, host: '127.0.0.1', servername: 'localhost', ca: both, ...credentials };
      return visitOf(connect({ ...options, ...(session && { session }) }));
    };
    const before = await visit(leaving);
    // Without its certificate: what admits it is the session alone.
    expect(await visit(leaving, before.session)).toMatchObject({ text: 'hello', isResumed: true });
    const other = await visit(staying);
    await trust(two.certificate);
    expect(await visit(leaving, before.session)).toMatchObject({ text: '', isResumed: false });
    expect(await visit(leaving)).toMatchObject({ text: '' });
    expect(await visit(staying)).toMatchObject({ text: 'hello' });
    expect(await visit(staying, other.session)).toMatchObject({ text: '' });
    await trust(both);
    expect(await visit(leaving, before.session)).toMatchObject({ text: '', isResumed: false });
  });
});

test('a client that is in its handshake when its CA is removed is not admitted', async () => {
  const { files, trust } = mount(server);
  const requests: string[] = [];
  const https = createServer({ requestCert: true }, (_request, response) => {
    requests.push('request');
    response.end('hello');
  });
  await serveTls(https, files);
  const port = await listen(https);
  const begun = once(https, 'connection');
  const visit = visitOf(
    connect({ port, host: '127.0.0.1', servername: 'localhost', ca: both, ...certificateOf(leaving) }),
    'GET / HTTP/1.0\r\n\r\n',
  );
  await begun;
  // The context of the handshake is that of the beginning.
  await trust(two.certificate);
  expect(await visit).toMatchObject({ text: '' });
  expect(requests).toEqual([]);
});

test('another root, another order and repetitions end no connection', async () => {
  const { files, trust } = mount(server);
  const https = createServer({ requestCert: true, keepAliveTimeout: 0 }, (_request, response) =>
    response.end('hello'),
  );
  await serveTls(https, files);
  const port = await listen(https);
  const agent = new Agent({ keepAlive: true, ...certificateOf(staying) });
  onTestFinished(() => agent.destroy());
  const ask = async (): Promise<TLSSocket> => (await askHttps({ port, ca: one.certificate }, agent)).socket;
  const socket = await ask();
  await trust(`${two.certificate}${one.certificate}`);
  await trust(`${both}${both}`);
  await trust(`${both}${two.renewed()}`);
  // Without a bundle, the last one stays in use.
  await trust('');
  expect(await ask()).toBe(socket);
});

describe.each(VERSIONS)('clients of a server whose CA is removed, %s', (version) => {
  async function startServer(): Promise<number> {
    const limits = { minVersion: version, maxVersion: version } as const;
    const https = createServer(
      { ...certificateOf(server), ...limits, keepAliveTimeout: 0 },
      (_request, response) => response.end('hello'),
    );
    return listen(https);
  }

  test('httpsAgent() closes its connections and resumes none, where the global agent does', async () => {
    const { files, trust } = mount(staying);
    const port = await startServer();
    const agent = httpsAgent(files, { keepAlive: true });
    onTestFinished(() => agent.destroy());
    const ask = () => askHttps({ port, ca: undefined as never }, agent);
    const { socket } = await ask();
    const closed = once(socket, 'close');
    await trust(two.certificate);
    await closed;
    await expect(ask()).rejects.toThrow(/verify|self-signed/);
    await trust(both);
    await expect(ask()).resolves.toMatchObject({ text: 'hello' });

    // The key of its cache has no trace of the default list; here a CA of its own stands for that.
    const global = async (ca: string) => askHttps({ port, ca }, globalAgent);
    const first = await global(one.certificate);
    first.socket.destroy();
    expect((await global(one.certificate)).isResumed).toBe(true);
  });

  test('an idle connection of httpsAgent() that cannot be destroyed holds up no other', async () => {
    const { files, trust } = mount(staying);
    const port = await startServer();
    const agent = httpsAgent(files, { keepAlive: true });
    onTestFinished(() => agent.destroy());
    await Promise.all([1, 2].map(() => askHttps({ port, ca: undefined as never }, agent)));
    const idle = (): (Duplex | undefined)[] => Object.values(agent.freeSockets).flat();
    await expect.poll(() => idle().length).toBe(2);
    const [sealed, other] = idle() as [Duplex, Duplex];
    const { destroy } = sealed;
    onTestFinished(() => void (sealed.destroy = destroy));
    sealed.destroy = () => {
      throw new Error('sealed');
    };
    const ended: number[] = [];
    files.on('connectionsEnded', ({ connections }) => ended.push(connections));
    const closed = once(other, 'close');
    await trust(two.certificate);
    await closed;
    expect(ended).toEqual([2]);
  });

  test('undiciDispatcher() closes its connections and resumes none', async () => {
    const { files, trust } = mount(staying);
    const port = await startServer();
    const dispatcher = await undiciDispatcher(files, { connect: { servername: 'localhost' } });
    onTestFinished(() => dispatcher.destroy());
    const ask = async (): Promise<string> =>
      (await request(`https://127.0.0.1:${port}`, { dispatcher })).body.text();
    expect([await ask(), await ask()]).toEqual(['hello', 'hello']);
    await trust(two.certificate);
    await expect(ask()).rejects.toThrow(/verify|self-signed/);
  });
});

test('a handshake that began before a CA was removed is not used: httpsAgent() says so, undiciDispatcher() repeats the request', async () => {
  const { files, trust } = mount(staying);
  const target = createServer(certificateOf(server), (_request, response) => response.end('hello'));
  const targetPort = await listen(target);
  const begun: (() => void)[] = [];
  const proxy = createTcpServer((socket) => {
    begun.push(() => void socket.pipe(connectTcp(targetPort)).pipe(socket));
    socket.on('error', () => {});
  });
  const port = await listen(proxy);
  const letThrough = async (count: number): Promise<void> => {
    await expect.poll(() => begun.length).toBe(count);
    begun[count - 1]?.();
  };
  const agent = httpsAgent(files);
  const dispatcher = await undiciDispatcher(files, { connect: { servername: 'localhost' } });
  onTestFinished(() => dispatcher.destroy());

  const refused = askHttps({ port, ca: undefined as never }, agent);
  await expect.poll(() => begun.length).toBe(1);
  await trust(one.certificate);
  await expect(refused).rejects.toMatchObject({ code: 'ERR_TLS_CA' });

  await trust(both);
  const repeated = request(`https://127.0.0.1:${port}`, { dispatcher });
  await expect.poll(() => begun.length).toBe(2);
  await trust(one.certificate);
  await letThrough(2);
  await letThrough(3);
  expect(await (await repeated).body.text()).toBe('hello');
});

test('the first CA bundle replaces the roots of Node.js, so connections that they verified end', async () => {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'tls'));
  const secret = { 'tls.crt': staying.chain, 'tls.key': staying.key };
  volume.publish(secret);
  const files = new TlsFiles(volume.directory);
  onTestFinished(() => files.close());
  const https = createServer(certificateOf(server), (_request, response) => response.end('hello'));
  const port = await listen(https);
  const agent = httpsAgent(files, { keepAlive: true, rejectUnauthorized: false });
  onTestFinished(() => agent.destroy());
  await askHttps({ port, ca: one.certificate }, agent);
  const ended: string[] = [];
  files.on('connectionsEnded', ({ by }) => ended.push(by));
  volume.publish({ ...secret, 'ca.crt': one.certificate });
  await files.check();
  expect(ended).toEqual(['httpsAgent']);
});

interface Visit {
  /** What the server says; nothing if it does not admit the client. */
  readonly text: string;
  readonly isResumed: boolean;
  readonly session: Buffer | undefined;
}

async function visitOf(socket: TLSSocket, question = ''): Promise<Visit> {
  let text = '';
  let session: Buffer | undefined;
  socket.on('session', (given) => (session = given));
  socket.on('data', (chunk) => (text += String(chunk))).on('error', () => {});
  let isResumed = false;
  socket.once('secureConnect', () => {
    isResumed = socket.isSessionReused();
    socket.write(question);
  });
  await new Promise((resolve) => socket.once('close', resolve));
  return { text, isResumed, session };
}

/** As an application does that shares sessions among processes. */
function keepSessions(tls: ReturnType<typeof createTlsServer>): void {
  const sessions = new Map<string, Buffer>();
  tls.on('newSession', (id: Buffer, session: Buffer, done: () => void) => {
    sessions.set(id.toString('hex'), session);
    done();
  });
  tls.on('resumeSession', (id: Buffer, done: (error: Error | null, session: Buffer | null) => void) => {
    done(null, sessions.get(id.toString('hex')) ?? null);
  });
}
