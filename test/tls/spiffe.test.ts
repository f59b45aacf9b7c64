/** A SPIFFE folder: OpenSSL verifies peers with the bundle of the trust domain, and a handler authorizes them by their ID. */
import { once } from 'node:events';
import { createSecureServer, type ServerHttp2Session } from 'node:http2';
import { Agent, createServer } from 'node:https';
import { join } from 'node:path';
import { connect, createServer as createTlsServer, type TLSSocket } from 'node:tls';

import { KubeletVolume } from 'resilient-watcher/testing';
import { httpsAgent, serveTls, spiffeIdOf, TlsFiles } from 'resilient-watcher/tls';
import { describe, expect, onTestFinished, test } from 'vitest';

import { AUTHORITY, craft, type Crafted } from '../support/crafted-certificates.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { askHttp2, askHttps, listen, openHttp2 } from '../support/tls-clients.js';

const CRITICAL = ['basicConstraints=critical,CA:false', 'keyUsage=critical,digitalSignature'];
const LEAF = [...CRITICAL, 'extendedKeyUsage=serverAuth,clientAuth'];
const ID = 'spiffe://home.org/a';
const uri = (value: string): string => `subjectAltName=URI:${value}`;
const NAMED = uri(ID);

const [root, other] = [craft(AUTHORITY), craft(AUTHORITY)];
const own = craft([...LEAF, `${uri('spiffe://home.org/server')},DNS:localhost`], root);

const below = (...limits: readonly string[]): Crafted => craft(limits, root);

/** The folder of a workload. The bundle of another trust domain is not named, so it is not trusted. */
function folderOf({ certificate, above, key }: Crafted): TlsFiles {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'spiffe'));
  const [bundle, ca] = ['credential-bundle.private-key.x509.pem', 'home.org.spiffe-trust-bundle.x509.pem'];
  volume.publish({
    [bundle]: `${key}${certificate}${above}`,
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

async function ask(port: number, { certificate, above, key }: Crafted): Promise<string> {
  const agent = new Agent({ cert: certificate + above, key });
  onTestFinished(() => agent.destroy());
  return (await askHttps({ port, ca: root.certificate }, agent)).text;
}

test.each<[what: string, make: () => Crafted]>([
  ['the ID of a trust domain', () => craft([...LEAF, uri('spiffe://home.org')], root)],
  ['two URIs', () => craft([...LEAF, `${NAMED},URI:https://home.org`], root)],
  ['a port', () => craft([...LEAF, uri('spiffe://home.org:443/a')], root)],
  ['a user', () => craft([...LEAF, uri('spiffe://me@home.org/a')], root)],
  ['a query', () => craft([...LEAF, uri('spiffe://home.org/a?b')], root)],
  ['a fragment', () => craft([...LEAF, uri('spiffe://home.org/a\\#b')], root)],
  ['a percent sign', () => craft([...LEAF, uri('spiffe://home.org/%61')], root)],
  ['an address', () => craft([...LEAF, uri('spiffe://[fe80\\:\\:1]/a')], root)],
  ['upper case', () => craft([...LEAF, uri('spiffe://Home.org/a')], root)],
  ['dots for a segment', () => craft([...LEAF, uri('spiffe://home.org/a/../b')], root)],
  ['a slash at its end', () => craft([...LEAF, uri('spiffe://home.org/a/')], root)],
  ['no URI', () => craft([...LEAF, 'subjectAltName=DNS:home.org'], root)],
  [
    'a URI inside another name',
    () => craft([...LEAF, 'subjectAltName=@names', '[names]', `DNS.1=a, URI:${ID}, DNS:b`], root),
  ],
])('a certificate with %s has no SPIFFE ID', async (_what, make) => {
  expect(await ask(await serve(), make())).toBe('nobody');
});

test.each<[what: string, make: () => Crafted]>([
  ['an authority of another trust domain', () => craft([...LEAF, NAMED], other)],
  ['an issuer that is not an authority', () => craft([...LEAF, NAMED], below(...LEAF))],
])('a client of %s is refused by OpenSSL', async (_what, make) => {
  await expect(ask(await serve(), make())).rejects.toThrow();
});

test('a certificate that only just follows the rules has a SPIFFE ID', async () => {
  const port = await serve();
  const longest = `spiffe://home.org/a/...${'/B-_.9'.repeat(10)}`;
  const names = `subjectAltName=URI:${longest},DNS:home.org`;
  const authority = below(...AUTHORITY, 'extendedKeyUsage=clientAuth');
  for (const extensions of [[...LEAF, names], [names]]) {
    expect(await ask(port, craft(extensions, authority))).toBe(longest);
  }
});

test('a client that asks for the ID of the server sends nothing to another one', async () => {
  const requests: string[] = [];
  const https = createServer(({ url }, response) => {
    requests.push(url ?? '');
    response.end();
  });
  await serveTls(https, folderOf(own));
  const port = await listen(https);
  const files = folderOf(craft([...LEAF, NAMED], root));
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
  const client = craft([...LEAF, NAMED], root);
  const identity = { ca: root.certificate, cert: client.certificate, key: client.key };

  test('knows nobody if OpenSSL has not verified the certificate', async () => {
    const { certificate: cert, key } = craft([...LEAF, NAMED], other);
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
