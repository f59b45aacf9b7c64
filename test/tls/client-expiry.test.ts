/** A connection does not outlive the certificate of its client. */
import { X509Certificate } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { createSecureServer } from 'node:http2';
import { Agent, createServer, type ServerOptions } from 'node:https';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { connect, createServer as createTlsServer, type Server, type TLSSocket } from 'node:tls';

import { CertificateSigner } from '@resilient-watcher/local-api-server';
import { FakeClock, KubeletVolume } from 'resilient-watcher/testing';
import { serveTls, spiffeIdOf, TlsFiles } from 'resilient-watcher/tls';
import { expect, onTestFinished, test } from 'vitest';

import { Outcome } from '../../src/core/scheduling/outcome.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { askHttp2, askHttps, listen, openHttp2 } from '../support/tls-clients.js';

const HOUR_MS = 3_600_000;
const DRAIN_MS = 5_000;
const root = new CertificateSigner({ name: 'root' });
const own = root.issue({ dnsNames: ['localhost'] });
const uri = 'spiffe://example.org/ns/shop/sa/billing';
const client = root.issue({ uris: [uri], lifetimeMs: HOUR_MS });
const identity = { ca: root.certificate, cert: client.chain, key: client.key };

interface Served {
  readonly port: number;
  readonly clock: FakeClock;
  /** Publishes a CA bundle. */
  readonly trust: (bundle: string) => Promise<void>;
}

async function serve(server: Server): Promise<Served> {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'tls'));
  const publish = (bundle: string): void =>
    void volume.publish({ 'tls.crt': own.chain, 'tls.key': own.key, 'ca.crt': bundle });
  publish(root.certificate);
  const clock = new FakeClock(Date.now());
  const files = new TlsFiles(volume.directory);
  onTestFinished(() => files.close());
  await serveTls(server, files, { clock, drainMs: DRAIN_MS });
  const trust = async (bundle: string): Promise<void> => {
    publish(bundle);
    await files.check();
  };
  return { port: await listen(server), clock, trust };
}

function keptAlive(): Agent {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ...identity });
  onTestFinished(() => agent.destroy());
  return agent;
}

test.each<[name: string, options: ServerOptions]>([
  ['the CA bundle of the files', {}],
  ['a CA of the server', { ca: root.certificate }],
])('an idle connection of HTTP/1 ends at the expiry, with %s', async (_name, options) => {
  const server = createServer({ requestCert: true, ...options }, (_, response) => response.end('hello'));
  const { port, clock } = await serve(server);
  const agent = keptAlive();
  const { socket } = await askHttps({ port, ca: root.certificate }, agent);
  const closed = once(socket, 'close');
  await clock.advance(HOUR_MS / 2);
  expect((await askHttps({ port, ca: root.certificate }, agent)).socket).toBe(socket);
  await clock.advance(HOUR_MS / 2);
  await closed;
});

test('a connection that begins after a CA was removed ends at the expiry, too', async () => {
  const accepted: TLSSocket[] = [];
  const server = createTlsServer({ requestCert: true }, (socket) => {
    accepted.push(socket);
    socket.write('hello');
  });
  const { port, clock, trust } = await serve(server);
  await trust(`${root.certificate}${new CertificateSigner({ name: 'another' }).certificate}`);
  await trust(root.certificate);
  const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ...identity });
  onTestFinished(() => void socket.destroy());
  await once(socket, 'data');
  await clock.advance(HOUR_MS);
  expect(accepted.map(({ destroyed }) => destroyed)).toEqual([true]);
});

test('a response in flight is finished as the last one of its connection, or ends after drainMs', async () => {
  const responses: ServerResponse[] = [];
  const asked = [new Outcome<void>(), new Outcome<void>()];
  const server = createServer({ requestCert: true }, (_, response) => {
    responses.push(response);
    asked[responses.length - 1]?.resolve();
  });
  const { port, clock } = await serve(server);
  const answers = [1, 2].map(() => askHttps({ port, ca: root.certificate }, keptAlive()));
  for (const answer of answers) answer.catch(() => {});
  await Promise.all(asked.map(({ promise }) => promise));
  await clock.advance(Date.parse(new X509Certificate(client.chain).validTo) - clock.now());
  responses[0]?.end('late');
  const finished = await Promise.any(answers);
  expect(finished.text).toBe('late');
  await clock.advance(DRAIN_MS);
  // By the clock and the time of the options, not by those of the system.
  expect(responses[1]?.req.socket.destroyed).toBe(true);
  const outcomes = await Promise.allSettled(answers);
  expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
});

test('a session of HTTP/2 gets GOAWAY', async () => {
  const server = createSecureServer({ requestCert: true }, (_, response) => response.end('hello'));
  const { port, clock } = await serve(server);
  const session = await openHttp2({ port, ...identity });
  expect(await askHttp2(session)).toBe('hello');
  const ended = once(session, 'goaway');
  await clock.advance(HOUR_MS);
  await ended;
});

test('a connection of plain TLS is destroyed', async () => {
  const server = createTlsServer({ requestCert: true }, (socket) => socket.write('hello'));
  const { port, clock } = await serve(server);
  const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ...identity });
  await once(socket, 'data');
  const closed = once(socket, 'close');
  await clock.advance(HOUR_MS);
  await closed;
});

test('a session that is resumed after the expiry reaches no listener', async () => {
  let connections = 0;
  const server = createTlsServer({ requestCert: true, maxVersion: 'TLSv1.2' }, (socket) => {
    connections += 1;
    socket.write('hello');
  });
  const { port, clock } = await serve(server);
  const dial = { port, host: '127.0.0.1', servername: 'localhost', ...identity };
  const first = connect(dial);
  await once(first, 'data');
  const session = first.getSession();
  await clock.advance(HOUR_MS);
  const second = connect({ ...dial, ...(session && { session }) });
  second.on('error', () => {}).resume();
  await once(second, 'close');
  expect(connections).toBe(1);
});

test('a client without a certificate stays, where it may', async () => {
  const server = createServer({ requestCert: true, rejectUnauthorized: false }, (_, response) =>
    response.end('hello'),
  );
  const { port, clock } = await serve(server);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const { socket } = await askHttps({ port, ca: root.certificate }, agent);
  await clock.advance(1_000 * HOUR_MS);
  expect((await askHttps({ port, ca: root.certificate }, agent)).socket).toBe(socket);
});

test('spiffeIdOf() does not answer once the certificate has expired', () => {
  const at = (notBefore: number): Socket => {
    const peer = new X509Certificate(root.issue({ uris: [uri], notBefore, lifetimeMs: HOUR_MS }).chain);
    return { authorized: true, getPeerX509Certificate: () => peer } as never;
  };
  expect(spiffeIdOf(at(Date.now() - HOUR_MS / 2))?.uri).toBe(uri);
  expect(spiffeIdOf(at(Date.now() - 2 * HOUR_MS))).toBeUndefined();
});

test.each(['session', 'secureConnection', 'request', 'upgrade', 'connect'])(
  'an event "%s" that the application emits itself, with anything, reaches its listeners',
  async (event) => {
    const server = createServer({ requestCert: true });
    await serve(server);
    const seen: unknown[][] = [];
    server.removeAllListeners(event);
    server.on(event, (...args: unknown[]) => void seen.push(args));
    const given = [[], [undefined], [null], [{}], [{ socket: 7 }], ['text'], [new EventEmitter()]];
    for (const args of given) (server as EventEmitter).emit(event, ...args);
    expect(seen).toEqual(given);
  },
);
