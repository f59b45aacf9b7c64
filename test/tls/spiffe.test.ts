/** A SPIFFE folder: OpenSSL verifies peers with the bundle of the trust domain, and a handler authorizes them by their ID. */
import { once } from 'node:events';
import { createSecureServer, type ServerHttp2Session } from 'node:http2';
import { Agent, createServer } from 'node:https';
import { join } from 'node:path';
import { connect, createServer as createTlsServer, type TLSSocket } from 'node:tls';

import {
  CertificateSigner,
  type CertificateFields,
  type IssuedCertificate,
} from '@resilient-watcher/local-api-server';
import { KubeletVolume } from 'resilient-watcher/testing';
import { httpsAgent, serveTls, spiffeIdOf, TlsFiles } from 'resilient-watcher/tls';
import { describe, expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';
import { askHttp2, askHttps, listen, openHttp2 } from '../support/tls-clients.js';

const ID = 'spiffe://home.org/a';
const NAMED = { uris: [ID] };

const [root, other] = [new CertificateSigner(), new CertificateSigner()];
const own = root.issue({ uris: ['spiffe://home.org/server'], dnsNames: ['localhost'] });

/** The folder of a workload. The bundle of another trust domain is not named, so it is not trusted. */
function folderOf(issued: IssuedCertificate): TlsFiles {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'spiffe'));
  const [bundle, ca] = ['credential-bundle.private-key.x509.pem', 'home.org.spiffe-trust-bundle.x509.pem'];
  volume.publish({
    [bundle]: issued.bundle,
    [ca]: root.certificate,
    'other.org.spiffe-trust-bundle.x509.pem': other.certificate,
  });
  const files = new TlsFiles({ bundle: volume.path(bundle), ca: volume.path(ca) });
  onTestFinished(() => files.close());
  return files;
}

/** A server that says who the client is, or 403. */
async function serve(): Promise<number> {
  const https = createServer({ requestCert: true }, ({ socket }, response) => {
    const id = spiffeIdOf(socket);
    response.writeHead(id?.trustDomain === 'home.org' ? 200 : 403).end(id?.uri ?? 'nobody');
  });
  await serveTls(https, folderOf(own));
  return listen(https);
}

async function ask(port: number, { chain, key }: IssuedCertificate): Promise<string> {
  const agent = new Agent({ cert: chain, key });
  onTestFinished(() => agent.destroy());
  return (await askHttps({ port, ca: root.certificate }, agent)).text;
}

test.each<[what: string, names: CertificateFields]>([
  ['the ID of a trust domain', { uris: ['spiffe://home.org'] }],
  ['two URIs', { uris: [ID, 'https://home.org'] }],
  ['a port', { uris: ['spiffe://home.org:443/a'] }],
  ['a user', { uris: ['spiffe://me@home.org/a'] }],
  ['a query', { uris: ['spiffe://home.org/a?b'] }],
  ['a fragment', { uris: ['spiffe://home.org/a#b'] }],
  ['a percent sign', { uris: ['spiffe://home.org/%61'] }],
  ['an address', { uris: ['spiffe://[fe80::1]/a'] }],
  ['upper case', { uris: ['spiffe://Home.org/a'] }],
  ['dots for a segment', { uris: ['spiffe://home.org/a/../b'] }],
  ['a slash at its end', { uris: ['spiffe://home.org/a/'] }],
  ['no URI', { dnsNames: ['home.org'] }],
  ['a URI inside another name', { dnsNames: [`a, URI:${ID}, DNS:b`] }],
])('a certificate with %s has no SPIFFE ID', async (_what, names) => {
  expect(await ask(await serve(), root.issue(names))).toBe('nobody');
});

test.each([
  ['an authority of another trust domain', other],
  ['an issuer that is not an authority', new CertificateSigner({ issuer: root, mayIssue: false })],
])('a client of %s is refused by OpenSSL', async (_what, issuer) => {
  await expect(ask(await serve(), issuer.issue(NAMED))).rejects.toThrow();
});

test('a certificate that only just follows the rules has a SPIFFE ID', async () => {
  const longest = `spiffe://home.org/a/...${'/B-_.9'.repeat(10)}`;
  const issuer = new CertificateSigner({ issuer: root });
  const client = issuer.issue({ uris: [longest], dnsNames: ['home.org'] });
  expect(await ask(await serve(), client)).toBe(longest);
});

test('a client that asks for the ID of the server sends nothing to another one', async () => {
  const requests: string[] = [];
  const https = createServer(({ url }, response) => {
    requests.push(url ?? '');
    response.end();
  });
  await serveTls(https, folderOf(own));
  const port = await listen(https);
  const files = folderOf(root.issue(NAMED));
  const agentFor = (wanted: string): Agent => {
    const agent = httpsAgent(files, {
      checkServerIdentity: (_host, { subjectaltname }) =>
        subjectaltname?.split(', ').includes(`URI:${wanted}`) ? undefined : new Error(`not ${wanted}`),
    });
    onTestFinished(() => agent.destroy());
    return agent;
  };
  const to = (wanted: string) => askHttps({ port, ca: root.certificate, path: '/x' }, agentFor(wanted));
  await expect(to('spiffe://home.org/other')).rejects.toThrow('not spiffe://home.org/other');
  expect(requests).toEqual([]);
  await to('spiffe://home.org/server');
  expect(requests).toEqual(['/x']);
});

describe('spiffeIdOf()', () => {
  const client = root.issue(NAMED);
  const identity = { ca: root.certificate, cert: client.chain, key: client.key };

  test('knows nobody if OpenSSL has not verified the certificate', async () => {
    const { chain: cert, key } = other.issue(NAMED);
    const tls = createTlsServer({ requestCert: true, rejectUnauthorized: false }, (socket) =>
      socket.end(spiffeIdOf(socket)?.uri ?? 'nobody'),
    );
    await serveTls(tls, folderOf(own));
    const socket = connect({
      port: await listen(tls),
      host: '127.0.0.1',
      servername: 'localhost',
      ...identity,
      cert,
      key,
    });
    expect(String(Buffer.concat(await socket.toArray()))).toBe('nobody');
  });

  test('knows nobody after a connection of plain TLS has ended', async () => {
    const tls = createTlsServer({ requestCert: true });
    await serveTls(tls, folderOf(own));
    const accepted = once(tls, 'secureConnection') as Promise<[TLSSocket]>;
    const port = await listen(tls);
    connect({ port, host: '127.0.0.1', servername: 'localhost', ...identity }).on('error', () => {});
    const [socket] = await accepted;
    expect(spiffeIdOf(socket)?.uri).toBe(ID);
    socket.destroy();
    expect(spiffeIdOf(socket)).toBeUndefined();
  });

  test('reads a peer of HTTP/2, and knows nobody after its session has ended', async () => {
    const http2 = createSecureServer({ requestCert: true }, ({ socket }, response) =>
      response.end(spiffeIdOf(socket)?.uri ?? 'nobody'),
    );
    await serveTls(http2, folderOf(own));
    const begun = once(http2, 'session') as Promise<[ServerHttp2Session]>;
    const session = await openHttp2({ port: await listen(http2), ...identity });
    expect(await askHttp2(session)).toBe(ID);
    const [onServer] = await begun;
    const { socket } = onServer;
    const ended = once(onServer, 'close');
    session.destroy();
    await ended;
    expect(spiffeIdOf(socket)).toBeUndefined();
  });
});
