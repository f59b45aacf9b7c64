/** A SPIFFE credential folder: OpenSSL verifies peers with the bundle of its trust domain; they are authorized by ID. */

import { createSecureServer } from 'node:http2';
import { Agent, createServer, get } from 'node:https';
import { join } from 'node:path';
import { connect, type Server, type TLSSocket } from 'node:tls';

import {
  serveSpiffe,
  spiffeAgent,
  spiffeDispatcher,
  spiffeFolder,
  spiffeIdOf,
  type SpiffeId,
} from 'resilient-watcher/spiffe';
import { CertificateSigner, KubeletVolume } from 'resilient-watcher/testing';
import type { TlsFiles } from 'resilient-watcher/tls';
import { request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';
import { askHttp2, askHttps, listen, openHttp2 } from '../support/tls-clients.js';

const home = new CertificateSigner({ name: 'home' });
const away = new CertificateSigner({ name: 'away' });
const server = 'spiffe://home.org/server';
const anyone = (): boolean => true;

interface Identity {
  readonly folder: TlsFiles;
  /** Publishes its credentials again, with these CAs for `home.org`. */
  readonly trust: (ca: string) => Promise<void>;
}

/** Who has been issued `uris` by the signer, and trusts the CAs of `home.org`. */
function identity(uris: string | string[], signer = home, ca = home.certificate): Identity {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'spiffe'));
  const { bundle } = signer.issue({ uris: [uris].flat() });
  const publish = (trusted: string): void =>
    void volume.publish({
      'credential-bundle.private-key.x509.pem': bundle,
      'home.org.spiffe-trust-bundle.x509.pem': trusted,
      'away.org.spiffe-trust-bundle.x509.pem': away.certificate,
    });
  publish(ca);
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

const idOf = ({ folder }: Identity): string | undefined =>
  folder.current?.certificate?.subjectAltName?.replace('URI:', '');

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

test('peers of the trust domain are admitted, through an intermediate authority, too', async () => {
  const port = await startServer(identity(server));
  const below = new CertificateSigner({ name: 'below', issuer: home });
  for (const client of [identity('spiffe://home.org/a'), identity('spiffe://home.org/b', below)]) {
    await client.folder.get();
    expect(await ask(port, await agentOf(client))).toBe(idOf(client));
    const dispatcher = await spiffeDispatcher(client.folder, { authorize: ({ uri }) => uri === server });
    onTestFinished(() => dispatcher.destroy());
    expect(await (await request(`https://127.0.0.1:${port}`, { dispatcher })).body.text()).toBe(idOf(client));
  }
});

test.each<[string, () => Identity]>([
  ['of another domain than its issuer', () => identity('spiffe://home.org/a', away)],
  ['of another trust domain, issued by its own authority', () => identity('spiffe://away.org/a')],
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

test('a client refuses a server of the wrong issuer or ID before it has sent anything', async () => {
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
  const wrong = [
    [identity(server, away), /unable to verify/],
    [identity('spiffe://home.org/other'), /is not authorized/],
  ] as const;
  for (const [own, message] of wrong) {
    const port = await started(own);
    await expect(ask(port, await agentOf(client, onlyServer))).rejects.toThrow(message);
    const dispatcher = await spiffeDispatcher(client.folder, { authorize: onlyServer });
    onTestFinished(() => dispatcher.destroy());
    await expect(request(`https://127.0.0.1:${port}`, { dispatcher })).rejects.toThrow(message);
  }
  expect(requests).toEqual([]);
});

test('a folder that is away or broken keeps the last good identity and bundle', async () => {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'spiffe'));
  const { bundle } = home.issue({ uris: [server] });
  const named = (ca: string) => ({
    'credential-bundle.private-key.x509.pem': bundle,
    'home.org.spiffe-trust-bundle.x509.pem': ca,
  });
  volume.publish(named(home.certificate));
  const folder = spiffeFolder(volume.directory);
  onTestFinished(() => folder.close());
  const first = await folder.get();
  const rejected: string[] = [];
  folder.on('rejected', ({ error }) => rejected.push(error.message));
  const { 'home.org.spiffe-trust-bundle.x509.pem': _, ...without } = named('');
  for (const broken of [
    named(''),
    without,
    { ...named(home.certificate), ...{ 'credential-bundle.private-key.x509.pem': 'no PEM' } },
  ]) {
    volume.publish(broken);
    await folder.check();
    expect(folder.current).toBe(first);
  }
  expect(rejected).toEqual([
    expect.stringMatching(/home\.org\.spiffe-trust-bundle\.x509\.pem" is empty/),
    expect.stringMatching(/There is no file ".*home\.org\.spiffe-trust-bundle\.x509\.pem"/),
    expect.stringMatching(/contains no certificate in PEM/),
  ]);
  volume.publish(named(home.certificate));
  await folder.check();
  expect(folder.status().rejected).toBeNull();
});

test('a client never resumes a session, because the server would not be checked again', async () => {
  const own = identity(server);
  const port = await startServer(own);
  const agent = await agentOf(identity('spiffe://home.org/client'));
  const session = await new Promise<Buffer>((resolve) => {
    const { chain: cert, key } = home.issue({ uris: ['spiffe://home.org/a'] });
    const socket = connect({ port, host: '127.0.0.1', cert, key, rejectUnauthorized: false });
    onTestFinished(() => void socket.destroy());
    socket.once('session', resolve).resume();
  });
  const visit = () =>
    new Promise<boolean>((resolve, reject) => {
      const options = { port, host: '127.0.0.1', agent, session, rejectUnauthorized: false };
      get(options as never, ({ socket }) => resolve((socket as TLSSocket).isSessionReused())).on(
        'error',
        reject,
      );
    });
  expect([await visit(), await visit()]).toEqual([false, false]);
});

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
