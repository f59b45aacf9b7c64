/** A SPIFFE credential folder: each peer is verified with the bundle of its own trust domain, and authorized by its ID. */
import { once } from 'node:events';
import { createSecureServer } from 'node:http2';
import { Agent, createServer, get } from 'node:https';
import { join } from 'node:path';
import { connect, type Server } from 'node:tls';

import {
  serveSpiffe,
  spiffeAgent,
  spiffeDispatcher,
  spiffeFolder,
  spiffeIdOf,
  type SpiffeFolder,
  type SpiffeId,
} from 'resilient-watcher/spiffe';
import { CertificateSigner, KubeletVolume, type CertificateFields } from 'resilient-watcher/testing';
import { request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';
import { askHttp2, askHttps, listen, openHttp2 } from '../support/tls-clients.js';

const home = new CertificateSigner({ name: 'home' });
const away = new CertificateSigner({ name: 'away' });
const server = 'spiffe://home.org/server';
const anyone = (): boolean => true;

interface Identity {
  readonly folder: SpiffeFolder;
  /** Publishes its bundle again, with these trust bundles. */
  readonly trust: (bundles: Readonly<Record<string, string>>) => Promise<void>;
}

const BOTH = { 'home.org': home.certificate, 'away.org': away.certificate };

/** Who has been issued `uris` by the signer, and trusts these domains. */
function identity(
  uris: string | string[],
  signer = home,
  bundles: Readonly<Record<string, string>> = BOTH,
  fields: CertificateFields = {},
): Identity {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'spiffe'));
  const { bundle } = signer.issue({ uris: [uris].flat(), ...fields });
  const publish = (trusted: Readonly<Record<string, string>>): void => {
    const named = Object.entries(trusted).map(([domain, ca]) => [
      `${domain}.spiffe-trust-bundle.x509.pem`,
      ca,
    ]);
    volume.publish({
      'credential-bundle.private-key.x509.pem': bundle,
      ...(Object.fromEntries(named) as Record<string, string>),
    });
  };
  publish(bundles);
  const folder = spiffeFolder(volume.directory);
  onTestFinished(() => folder.close());
  return {
    folder,
    trust: async (trusted) => {
      publish(trusted);
      await folder.check();
    },
  };
}

async function startServer(own: Identity, authorize: (id: SpiffeId) => boolean = anyone): Promise<number> {
  const https = createServer({ keepAliveTimeout: 0 }, ({ socket }, response) =>
    response.end(spiffeIdOf(socket as never)?.uri),
  );
  await serveSpiffe(https, own.folder, { authorize });
  return listen(https);
}

async function agentOf(own: Identity, authorize = anyone as (id: SpiffeId) => boolean): Promise<Agent> {
  await own.folder.get();
  const agent = spiffeAgent(own.folder, { authorize }, { keepAlive: true });
  onTestFinished(() => agent.destroy());
  return agent;
}

const ask = async (port: number, agent: Agent): Promise<string> =>
  (await askHttps({ port, ca: undefined as never }, agent)).text;

test('peers of two trust domains are admitted by their own bundle, through an intermediate authority, too', async () => {
  const port = await startServer(identity(server));
  const below = new CertificateSigner({ name: 'below', issuer: away });
  for (const client of [identity('spiffe://home.org/a'), identity('spiffe://away.org/b', below)]) {
    const { id } = await client.folder.get();
    expect(await ask(port, await agentOf(client))).toBe(id.uri);
    const dispatcher = await spiffeDispatcher(client.folder, { authorize: ({ uri }) => uri === server });
    onTestFinished(() => dispatcher.destroy());
    expect(await (await request(`https://127.0.0.1:${port}`, { dispatcher })).body.text()).toBe(id.uri);
  }
});

test.each<[string, () => Identity]>([
  ['of another domain than its issuer', () => identity('spiffe://home.org/a', away)],
  ['of a domain without a bundle', () => identity('spiffe://unknown.org/a')],
  [
    'of an authority that nobody knows',
    () => identity('spiffe://home.org/a', new CertificateSigner({ name: 'home' })),
  ],
  [
    'of an authority below one that may have none below it',
    () => {
      const last = new CertificateSigner({ name: 'last', issuer: home, maxPathLength: 0 });
      return identity('spiffe://home.org/admin', new CertificateSigner({ name: 'below', issuer: last }));
    },
  ],
])('a client %s is refused', async (_name, client) => {
  const port = await startServer(identity(server));
  await expect(ask(port, await agentOf(client()))).rejects.toThrow();
});

test('a client without a certificate, with a plain or a forged one, or that is not authorized is refused', async () => {
  const port = await startServer(identity(server), ({ path }) => path.startsWith('/good/'));
  const plain = home.issue({ dnsNames: ['localhost'] });
  // A client of the domain that signs as if it were an authority.
  const client = new CertificateSigner({ name: 'client', issuer: home, mayIssue: false });
  const forged = client.issue({ uris: ['spiffe://home.org/good/a'] });
  for (const options of [{}, ...[plain, forged].map(({ chain, key }) => ({ cert: chain, key }))]) {
    const agent = new Agent({ ...options, rejectUnauthorized: false });
    onTestFinished(() => agent.destroy());
    await expect(ask(port, agent)).rejects.toThrow();
  }
  await expect(ask(port, await agentOf(identity('spiffe://home.org/bad/a')))).rejects.toThrow();
  expect(await ask(port, await agentOf(identity('spiffe://home.org/good/a')))).toBe(
    'spiffe://home.org/good/a',
  );
});

test('a client refuses a server of the wrong domain, issuer or ID before it has sent anything', async () => {
  const requests: string[] = [];
  const started = async (own: Identity): Promise<number> => {
    const https: Server = createServer((_request, response) => {
      requests.push('request');
      response.end();
    });
    await serveSpiffe(https, own.folder, { authorize: anyone });
    return listen(https);
  };
  const client = identity('spiffe://home.org/client');
  const onlyServer = ({ uri }: SpiffeId): boolean => uri === server;
  for (const wrong of [identity(server, away), identity('spiffe://away.org/server', away)]) {
    const port = await started(wrong);
    await expect(ask(port, await agentOf(client, onlyServer))).rejects.toMatchObject({
      code: 'ERR_TLS_PEER',
    });
    const dispatcher = await spiffeDispatcher(client.folder, { authorize: onlyServer });
    onTestFinished(() => dispatcher.destroy());
    await expect(request(`https://127.0.0.1:${port}`, { dispatcher })).rejects.toMatchObject({
      code: 'ERR_TLS_PEER',
    });
  }
  expect(requests).toEqual([]);
});

test('a removed bundle ends the federation: connections close, and new ones are refused', async () => {
  const own = identity(server);
  const port = await startServer(own);
  const [leaving, staying] = [
    await agentOf(identity('spiffe://away.org/a', away)),
    await agentOf(identity('spiffe://home.org/b')),
  ];
  const { socket } = await askHttps({ port, ca: undefined as never }, leaving);
  const kept = (await askHttps({ port, ca: undefined as never }, staying)).socket;
  const ended = once(socket, 'close');
  await own.trust({ 'home.org': home.certificate });
  await ended;
  await expect(ask(port, leaving)).rejects.toThrow();
  expect((await askHttps({ port, ca: undefined as never }, staying)).socket).toBe(kept);
  expect(own.folder.status()).toMatchObject({ id: server, trustDomains: ['home.org'] });
});

test('a bundle that is broken keeps the last good one of its domain, and does not keep another one alive', async () => {
  const own = identity(server);
  const errors: string[] = [];
  own.folder.on('error', ({ message }) => errors.push(message));
  await own.folder.get();
  await own.trust({ 'home.org': '' });
  expect(own.folder.status().trustDomains).toEqual(['home.org']);
  expect(errors).toEqual([expect.stringMatching(/home\.org\.spiffe-trust-bundle\.x509\.pem" is empty/)]);
  const port = await startServer(own);
  expect(await ask(port, await agentOf(identity('spiffe://home.org/b')))).toBe('spiffe://home.org/b');
});

test('an identity that cannot be used does not keep a removed bundle in force', async () => {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'spiffe'));
  const publish = (bundle: string, domains: readonly string[]): void =>
    void volume.publish({
      'credential-bundle.private-key.x509.pem': bundle,
      ...Object.fromEntries(
        domains.map((domain) => [`${domain}.spiffe-trust-bundle.x509.pem`, home.certificate]),
      ),
    });
  const { bundle } = home.issue({ uris: [server] });
  publish(bundle, ['home.org', 'away.org']);
  const folder = spiffeFolder(volume.directory);
  onTestFinished(() => folder.close());
  const first = await folder.get();
  const events: string[] = [];
  folder.on('change', ({ current }) => events.push(`change: ${[...current.bundles.keys()].join()}`));
  folder.on('rejected', ({ error }) => events.push(error.code));

  publish('no PEM', ['home.org']);
  await folder.check();
  expect(events).toEqual(['change: home.org', 'ERR_TLS_PEM']);
  expect(folder.current?.fingerprint256).toBe(first.fingerprint256);
  expect(folder.status()).toMatchObject({ id: server, rejected: { code: 'ERR_TLS_PEM' } });
  // It is used as soon as it is valid.
  const future = home.issue({ uris: [server], notBefore: Date.now() + 3_600_000 });
  publish(future.bundle, []);
  await folder.check();
  publish(bundle, []);
  await folder.check();
  expect(events.slice(2)).toEqual(['change: ', 'ERR_TLS_NOT_YET_VALID']);
  expect(folder.status()).toMatchObject({ trustDomains: [], rejected: null });
});

test('only the exact name of a trust domain makes a file its bundle', async () => {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'spiffe'));
  const trusted = ['home.org', 'home.org.evil.org', 'home', '_', 'a..b'];
  const ignored = ['Home.org', 'home.org:443', 'h%6fme.org', 'home org', 'höme.org', 'home.org\n', ''];
  const files = [...trusted, ...ignored].map((name) => [
    `${name}.spiffe-trust-bundle.x509.pem`,
    name === 'home.org' ? home.certificate : away.certificate,
  ]);
  volume.publish({
    ...(Object.fromEntries(files) as Record<string, string>),
    'home.org.spiffe-trust-bundle.x509.pem.bak': away.certificate,
    'credential-bundle.private-key.x509.pem': home.issue({ uris: [server] }).bundle,
  });
  const folder = spiffeFolder(volume.directory);
  onTestFinished(() => folder.close());
  const { bundles } = await folder.get();
  expect(new Set(bundles.keys())).toEqual(new Set(trusted));
  expect(bundles.get('home.org')?.map(String)).toEqual([home.certificate]);
});

test.each(['TLSv1.2', 'TLSv1.3'] as const)(
  'a session that is resumed is verified as well, on both sides (%s)',
  async (version) => {
    // The application keeps the sessions, which only it can do here.
    const sessions = new Map<string, Buffer>();
    const own = identity(server);
    const https = createServer({ minVersion: version, maxVersion: version }, ({ socket }, response) =>
      response.end(spiffeIdOf(socket as never)?.uri),
    );
    https.on('newSession', (id: Buffer, session: Buffer, done: () => void) => {
      sessions.set(id.toString('hex'), session);
      done();
    });
    https.on('resumeSession', (id: Buffer, done: (error: null, session: Buffer | null) => void) =>
      done(null, sessions.get(id.toString('hex')) ?? null),
    );
    await serveSpiffe(https, own.folder, { authorize: anyone });
    const port = await listen(https);
    const { chain: cert, key } = away.issue({ uris: ['spiffe://away.org/a'] });
    const visit = async (session?: Buffer) => {
      const limits = { minVersion: version, maxVersion: version, rejectUnauthorized: false };
      const socket = connect({ port, host: '127.0.0.1', cert, key, ...limits, ...(session && { session }) });
      let [text, given] = ['', session];
      socket.on('session', (next) => (given = next)).on('data', (data) => (text += String(data)));
      let isResumed = false;
      socket.on('error', () => undefined).once('secureConnect', () => (isResumed = socket.isSessionReused()));
      socket.write('GET / HTTP/1.0\r\n\r\n');
      await new Promise((resolve) => socket.once('close', resolve));
      return { text, session: given, isResumed };
    };
    const first = await visit();
    expect(first.text).toContain('spiffe://away.org/a');
    const again = await visit(first.session);
    expect(again.text).toContain('spiffe://away.org/a');
    // Without tickets, Node.js resumes nothing in TLS 1.3.
    expect(again.isResumed).toBe(version === 'TLSv1.2');
    // The same root for another domain is not enough.
    await own.trust({ 'home.org': home.certificate, 'other.org': away.certificate });
    expect([(await visit(first.session)).text, (await visit()).text]).toEqual(['', '']);

    const client = identity('spiffe://home.org/client', home, { 'other.org': home.certificate });
    const agent = await agentOf(client);
    const options = { port, host: '127.0.0.1', agent, session: first.session };
    await expect(
      new Promise((resolve, reject) => get(options as never, resolve).on('error', reject)),
    ).rejects.toMatchObject({ code: 'ERR_TLS_PEER' });
  },
);

test('HTTP/2 is served in the same way, and a certificate without a SPIFFE ID is no identity', async () => {
  const served: (string | undefined)[] = [];
  const http2 = createSecureServer({}, ({ stream }, response) => {
    served.push(spiffeIdOf(stream.session?.socket as never)?.uri);
    response.end('hello');
  });
  await serveSpiffe(http2, identity(server).folder, { authorize: ({ path }) => path === '/a' });
  const port = await listen(http2);
  const client = (uri: string) => {
    const { chain: cert, key } = home.issue({ uris: [uri] });
    return openHttp2({
      port,
      ca: home.certificate,
      cert,
      key,
      checkServerIdentity: () => undefined,
    } as never);
  };
  expect(await askHttp2(await client('spiffe://home.org/a'))).toBe('hello');
  const refused = await client('spiffe://home.org/b')
    .then(askHttp2)
    .catch(() => '');
  expect([refused, served]).toEqual(['', ['spiffe://home.org/a']]);

  for (const uris of [
    [],
    ['spiffe://home.org/a', 'spiffe://home.org/b'],
    ['https://home.org/a'],
    ['spiffe://Home.org/a'],
  ]) {
    await expect(identity(uris).folder.get()).rejects.toMatchObject({
      cause: { code: 'ERR_TLS_PEM' },
    });
  }
});
