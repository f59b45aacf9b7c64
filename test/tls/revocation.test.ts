/** Revocation lists beside a set: OpenSSL decides in the handshake, and the library ends what was open before. */
import { constants } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server, type ServerOptions } from 'node:https';
import { join } from 'node:path';
import * as tls from 'node:tls';
import { connect, type TLSSocket } from 'node:tls';

import { FakeClock, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import {
  followDefaultCa,
  httpsAgent,
  serveTls,
  sniCallback,
  TlsFiles,
  undiciDispatcher,
  type TlsFilesOptions,
} from 'resilient-watcher/tls';
import { request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';

import type { CertificatePair } from '../support/certificates.js';
import { derOf, RevokingAuthority } from '../support/revoking-authority.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { askHttps, listen } from '../support/tls-clients.js';

const DAY_MS = 86_400_000;
const root = new RevokingAuthority('root');
const other = new RevokingAuthority('other');
const below = new RevokingAuthority('below', root);
const own = root.issue('own');
const [alice, bob] = [root.issue('alice'), root.issue('bob')];
const stranger = other.issue('stranger');
const deep = below.issue('deep');
const both = root.cert + other.cert;

interface Mounted {
  readonly volume: KubeletVolume;
  readonly files: TlsFiles;
  readonly clock: FakeClock;
  readonly events: string[];
  readonly publish: (crl: string | Buffer, ca?: string) => Promise<void>;
}

/** A volume with the pair of the server, a CA bundle and the lists. */
function mount(crl: string | Buffer, ca = root.cert, options: TlsFilesOptions = {}): Mounted {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'tls'));
  const write = (lists: string | Buffer, bundle: string): void =>
    void volume.publish({ 'tls.crt': own.cert, 'tls.key': own.key, 'ca.crt': bundle, 'ca.crl': lists });
  write(crl, ca);
  const [cert, key] = [volume.path('tls.crt'), volume.path('tls.key')];
  const clock = new FakeClock(Date.now());
  const paths = { cert, key, ca: volume.path('ca.crt'), crl: volume.path('ca.crl') };
  const files = new TlsFiles(paths, {
    backend: new ScriptedBackend(),
    resyncIntervalMs: 0,
    clock,
    ...options,
  });
  onTestFinished(() => files.close());
  const events: string[] = [];
  files.on('change', () => events.push('change'));
  files.on('rejected', ({ error }) => events.push(`rejected ${error.code}: ${error.message}`));
  files.on('warning', ({ code, message }) => events.push(`${code}: ${message}`));
  files.on('connectionsEnded', ({ connections }) => events.push(`ended ${connections}`));
  const publish: Mounted['publish'] = async (next, bundle = ca) => {
    write(next, bundle);
    await files.check();
  };
  return { volume, files, clock, events, publish };
}

async function start(
  { files }: Mounted,
  options: ServerOptions = {},
): Promise<{ server: Server; port: number }> {
  const server = createServer({ requestCert: true, ...options }, (_request, response) =>
    response.end('hello'),
  );
  await serveTls(server, files);
  return { server, port: await listen(server) };
}

/** What a client gets that makes a new connection. */
async function answerTo(client: CertificatePair, port: number): Promise<string> {
  return askHttps({ port, ca: root.cert, ...client }).then(
    ({ text }) => text,
    (error: unknown) => (error as { readonly code: string }).code,
  );
}

const REFUSED = /^(ECONNRESET|EPIPE|ERR_SSL_)/;

test('a client that the list names is refused in the handshake, and another one is admitted', async () => {
  const { port } = await start(mount(root.list([alice])));
  expect(await answerTo(alice, port)).toMatch(REFUSED);
  expect(await answerTo(bob, port)).toBe('hello');
});

test('a client that is revoked while it is connected loses its connection, and resumes no session', async () => {
  const mounted = mount(root.list([]));
  const { server, port } = await start(mounted);
  const identity = { port, host: '127.0.0.1', servername: 'localhost', ca: root.cert };
  const sessions: Buffer[] = [];
  const open = (client: CertificatePair, session?: Buffer) => {
    const socket = connect({ ...identity, ...client, session }).on('error', () => {});
    onTestFinished(() => void socket.destroy());
    return socket.on('session', (given) => sessions.push(given)).resume();
  };
  const socket = open(alice);
  await once(server, 'secureConnection');
  await once(socket, 'session');
  const resumed = open(alice, sessions[0]);
  await once(server, 'secureConnection');
  expect(resumed.isSessionReused()).toBe(true);
  const closed = Promise.all([once(socket, 'close'), once(resumed, 'close')]);
  await mounted.publish(root.list([alice]));
  await closed;
  expect(mounted.events).toEqual(['change', 'change', 'ended 2']);
  let isAdmitted = false;
  server.on('secureConnection', () => (isAdmitted = true));
  for (const session of sessions.slice(0, 2)) await once(open(alice, session), 'close');
  expect(isAdmitted).toBe(false);
  expect(await answerTo(bob, port)).toBe('hello');
});

test('a new list that names nobody new ends nothing, and whom it no longer names is admitted', async () => {
  const mounted = mount(root.list([alice]));
  const { server, port } = await start(mounted);
  const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ca: root.cert, ...bob });
  onTestFinished(() => void socket.destroy());
  await once(server, 'secureConnection');
  await mounted.publish(root.list([alice], { until: Date.now() + 2 * DAY_MS }));
  await mounted.publish(root.list([]));
  expect(mounted.events).toEqual(['change', 'change', 'change']);
  expect(await answerTo(alice, port)).toBe('hello');
  expect(socket.destroyed).toBe(false);
  await mounted.publish(root.list([alice]));
  expect(mounted.events.at(-1)).toMatch(/^ended [1-4]$/);
  await once(socket.resume(), 'close');
});

test('a list that expires soon, and one that has expired, are named, and used as OpenSSL does until the next one', async () => {
  const until = Math.floor(Date.now() / 1_000) * 1_000 + DAY_MS;
  const mounted = mount(root.list([], { until }));
  const { files, clock, events } = mounted;
  await files.get();
  expect(files.status()).toMatchObject({ crlExpiresAt: until, warnings: [] });
  await clock.advance(DAY_MS - 3_600_000);
  const name = `The revocation list of O=Example\\, Inc., CN=root in "${mounted.volume.path('ca.crl')}"`;
  const end = new Date(until).toISOString();
  const then = 'OpenSSL refuses every certificate of this CA';
  const soon = `certificate: ${name} expires at ${end}, and has not been replaced; from then on, ${then}`;
  expect(events).toEqual(['change', soon]);
  await clock.advance(3_600_000);
  const late = `certificate: ${name} expired at ${end}; until there is a newer one, ${then}`;
  expect(events).toEqual(['change', soon, late]);
  // Left beside its successor, the old list says nothing any more.
  await mounted.publish(root.list([], { until }) + root.list([], { until: until + DAY_MS }));
  expect(events).toHaveLength(4);
  expect(files.status()).toMatchObject({ crlExpiresAt: until + DAY_MS, warnings: [] });
});

test('an expired list is used: OpenSSL refuses all clients of its CA until the next one', async () => {
  const mounted = mount(root.list([], { from: Date.now() - 2 * DAY_MS, until: Date.now() - DAY_MS }));
  const { port } = await start(mounted);
  expect(mounted.events.join('\n')).toContain('expired at');
  expect(await answerTo(bob, port)).toMatch(REFUSED);
  await mounted.publish(root.list([]));
  expect(await answerTo(bob, port)).toBe('hello');
});

test('a list that has not begun is named, and revokes from its date on', async () => {
  const from = Date.now() + DAY_MS;
  const future = root.list([alice], { from, until: from + DAY_MS });
  const mounted = mount(future);
  const { files, clock, events } = mounted;
  await files.get();
  expect(events[1]).toContain('CN=root in');
  expect(events[1]).toContain('is not valid before');
  await mounted.publish(future + root.list([], { until: from + DAY_MS }));
  expect(files.status().warnings).toEqual([]);
  expect(files.current?.revocation?.revoked.size).toBe(0);
  await clock.advance(DAY_MS + 1_000);
  expect(files.current?.revocation?.revoked.size).toBe(1);
});

test('lists of several authorities follow each other in one file; a CA without one is named', async () => {
  const mounted = mount(root.list([alice]), both);
  const { port } = await start(mounted);
  expect(mounted.events[1]).toBe(
    `certificate: "${mounted.volume.path('ca.crl')}" has no revocation list of O=Example\\, Inc., CN=other; OpenSSL refuses every certificate of such a CA`,
  );
  expect(await answerTo(stranger, port)).toMatch(REFUSED);
  await mounted.publish(root.list([alice]) + other.list([]));
  expect(mounted.files.status().warnings).toEqual([]);
  expect(await answerTo(stranger, port)).toBe('hello');
  expect(await answerTo(alice, port)).toMatch(REFUSED);
});

test('an authority below the root needs a list of its own, and the root one as well', async () => {
  const mounted = mount(root.list([]));
  const { port } = await start(mounted);
  expect(await answerTo(deep, port)).toMatch(REFUSED);
  await mounted.publish(root.list([]) + below.list([]));
  expect(await answerTo(deep, port)).toBe('hello');
  await mounted.publish(root.list([{ cert: below.cert, key: '' }]) + below.list([]));
  expect(await answerTo(deep, port)).toMatch(REFUSED);
});

test('a list in DER is used', async () => {
  const { port } = await start(mount(derOf(root.list([alice]))));
  expect(await answerTo(alice, port)).toMatch(REFUSED);
  expect(await answerTo(bob, port)).toBe('hello');
});

test.each<[string, string | Buffer, string]>([
  ['an empty file', '', 'is empty'],
  ['junk', 'junk', 'contains no revocation list'],
  ['a certificate', root.cert, 'contains PEM of type "CERTIFICATE", but no complete revocation list'],
  [
    'half a list',
    root.list([]).slice(0, 200),
    'contains PEM of type "X509 CRL", but no complete revocation list',
  ],
  ['a list and half of another', root.list([]) + other.list([]).slice(0, 200), 'Cannot parse list 2 of 2'],
  ['half a list in DER', derOf(root.list([])).subarray(0, 100), 'cut off, or damaged'],
  ['a list without dates', Buffer.from('3006300430003000', 'hex'), 'cut off, or damaged'],
])('%s is rejected with its path, and the last list stays in use', async (_what, broken, why) => {
  const mounted = mount(root.list([alice]));
  const { port } = await start(mounted);
  await mounted.publish(broken);
  expect(mounted.events[1]).toContain('rejected ERR_TLS_CRL');
  expect(mounted.events[1]).toContain(mounted.volume.path('ca.crl'));
  expect(mounted.events[1]).toContain(why);
  expect(await answerTo(alice, port)).toMatch(REFUSED);
});

test('a list that is missing, or that OpenSSL does not load, is rejected', async () => {
  const mounted = mount(root.list([alice]));
  await mounted.files.get();
  mounted.volume.publish({ 'tls.crt': own.cert, 'tls.key': own.key, 'ca.crt': root.cert });
  await mounted.files.check();
  expect(mounted.events.at(-1)).toContain('rejected ERR_TLS_MISSING');
  const damaged = derOf(root.list([]));
  damaged[damaged.indexOf(0x17)] = 0x16; // the kind of a date
  await mounted.publish(damaged);
  expect(mounted.events.at(-1)).toMatch(/^rejected ERR_TLS_(CRL|REFUSED)/);
  expect(mounted.files.current?.revocation?.revoked.size).toBe(1);
});

test('lists of any length are used', async () => {
  const mounted = mount(root.list([]));
  await mounted.files.get();
  const many = Array.from({ length: 16 }, (_, index) => root.list(['01'.repeat(index + 1)]));
  for (const lists of many) await mounted.publish(lists);
  expect(mounted.events.filter((event) => event.startsWith('rejected'))).toEqual([]);
});

test('a CA and its list are replaced together: in a volume, no mixture is ever in use', async () => {
  const mounted = mount(root.list([]));
  const seen: string[] = [];
  mounted.files.on('change', ({ current }) =>
    seen.push(`${current.authorities.length} ${current.crl?.length}`),
  );
  await mounted.files.get();
  await mounted.publish(root.list([]) + other.list([]), both);
  expect(seen).toEqual(['1 1', '2 2']);
});

test('a server with a CA bundle of its own uses the lists of the files, and one with lists of its own keeps them', async () => {
  const mounted = mount(root.list([alice]), other.cert);
  const withCa = await start(mounted, { ca: root.cert });
  expect(await answerTo(alice, withCa.port)).toMatch(REFUSED);
  expect(await answerTo(bob, withCa.port)).toBe('hello');
  const socket = connect({
    port: withCa.port,
    host: '127.0.0.1',
    servername: 'localhost',
    ca: root.cert,
    ...bob,
  });
  await once(withCa.server, 'secureConnection');
  await mounted.publish(root.list([alice, bob]));
  await once(socket.on('error', () => {}).resume(), 'close');
  const withList = await start(mounted, { ca: root.cert, crl: root.list([]) });
  expect(await answerTo(alice, withList.port)).toBe('hello');
  await mounted.publish(root.list([alice, bob, own]));
  expect(await answerTo(alice, withList.port)).toBe('hello');
});

test('a revoked client resumes no session that the application has stored, also where the server has a CA bundle of its own', async () => {
  const mounted = mount(root.list([]));
  const { server, port } = await start(mounted, {
    ca: root.cert,
    maxVersion: 'TLSv1.2',
    secureOptions: constants.SSL_OP_NO_TICKET,
  });
  const stored = new Map<string, Buffer>();
  server.on('newSession', (id: Buffer, data: Buffer, done: () => void) => {
    stored.set(id.toString('hex'), data);
    done();
  });
  server.on('resumeSession', (id: Buffer, done: (error: null, data: Buffer | null) => void) =>
    done(null, stored.get(id.toString('hex')) ?? null),
  );
  const open = (session?: Buffer): TLSSocket => {
    const identity = { port, host: '127.0.0.1', servername: 'localhost', ca: root.cert, ...alice };
    const socket = connect({ ...identity, session }).on('error', () => {});
    onTestFinished(() => void socket.destroy());
    return socket.resume();
  };
  const first = open();
  await once(server, 'secureConnection');
  const session = first.getSession();
  const second = open(session);
  await once(server, 'secureConnection');
  expect(second.isSessionReused()).toBe(true);
  await mounted.publish(root.list([alice]));
  let isAdmitted = false;
  server.on('secureConnection', (socket: TLSSocket) => {
    isAdmitted = true;
    socket.destroy();
  });
  const third = open(session); // `once()` of node:events would reject for an error
  await new Promise((resolve) => third.once('close', resolve));
  expect(isAdmitted).toBe(false);
});

test('clients refuse a server that the list names, also one that they were connected to', async () => {
  const server = createServer(own, (_request, response) => response.end('hello'));
  const port = await listen(server);
  const mounted = mount(root.list([]));
  const agent = httpsAgent(mounted.files, { keepAlive: true });
  const dispatcher = await undiciDispatcher(mounted.files, { connect: { servername: 'localhost' } });
  onTestFinished(() => dispatcher.destroy());
  onTestFinished(() => agent.destroy());
  const ask = async (): Promise<unknown[]> => {
    const codeOf = (error: unknown): string => (error as { readonly code: string }).code;
    const byUndici = request(`https://127.0.0.1:${port}/`, { dispatcher }).then(
      ({ body }) => body.text(),
      codeOf,
    );
    return Promise.all([askHttps({ port } as never, agent).then(({ text }) => text, codeOf), byUndici]);
  };
  expect(await ask()).toEqual(['hello', 'hello']);
  await mounted.publish(root.list([own]));
  expect(mounted.events.filter((event) => event.startsWith('ended'))).toHaveLength(2);
  expect(await ask()).toEqual(['CERT_REVOKED', 'CERT_REVOKED']);
  await mounted.publish(root.list([]));
  expect(await ask()).toEqual(['hello', 'hello']);
});

test('a host of sniCallback() has the lists of its files', async () => {
  const mounted = mount(root.list([alice]));
  await mounted.files.get();
  const main = mount(root.list([]));
  const { port } = await start(main, { SNICallback: sniCallback({ localhost: mounted.files }) });
  expect(await answerTo(alice, port)).toMatch(REFUSED);
  expect(await answerTo(bob, port)).toBe('hello');
});

test('a parser may return lists; without them, the last ones stay in use', async () => {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'tls'));
  const pem = { cert: own.cert, key: own.key, ca: root.cert };
  volume.publish({ set: JSON.stringify({ ...pem, crl: root.list([alice]) }) });
  const files = new TlsFiles(
    { set: volume.path('set') },
    { parse: ({ set }) => JSON.parse(String(set)) as typeof pem },
  );
  onTestFinished(() => files.close());
  expect((await files.get()).crl).toHaveLength(1);
  volume.publish({ set: JSON.stringify({ ...pem, ca: both }) });
  await files.check();
  expect([files.current?.authorities.length, files.current?.crl?.length]).toEqual([2, 1]);
  volume.publish({ set: JSON.stringify({ crl: root.list([alice]) }) });
  await files.check();
  expect(files.status().rejected).toMatchObject({ code: 'ERR_TLS_PARSE' });
});

test.runIf('setDefaultCACertificates' in tls)(
  'followDefaultCa() would not use the lists, and refuses them by name',
  async () => {
    const refusal = {
      code: 'ERR_TLS_UNSUPPORTED',
      message: expect.stringContaining('revocation lists') as string,
    };
    await expect(followDefaultCa(mount(root.list([])).files)).rejects.toMatchObject(refusal);
  },
);

test('paths need something that a list protects', () => {
  expect(() => new TlsFiles({ crl: '/etc/tls/ca.crl' })).toThrow('with or without crl; got crl');
});
