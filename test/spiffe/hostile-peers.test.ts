/** Peers that are refused although an authority of their trust domain has certified them. */
import { once } from 'node:events';
import { Agent, createServer } from 'node:https';
import { join } from 'node:path';
import { connect, type SecureVersion, type TLSSocket } from 'node:tls';

import {
  serveSpiffe,
  spiffeAgent,
  spiffeDispatcher,
  spiffeFolder,
  spiffeIdOf,
} from 'resilient-watcher/spiffe';
import { KubeletVolume } from 'resilient-watcher/testing';
import { request } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';

import { AUTHORITY, craft, type Crafted } from '../support/crafted-certificates.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { askHttps, listen } from '../support/tls-clients.js';

const CRITICAL = ['basicConstraints=critical,CA:false', 'keyUsage=critical,digitalSignature'];
const LEAF = [...CRITICAL, 'extendedKeyUsage=serverAuth,clientAuth'];
const ID = 'spiffe://home.org/a';
const uri = (value: string): string => `subjectAltName=URI:${value}`;
const NAMED = uri(ID);

const [root, other] = [craft(AUTHORITY), craft(AUTHORITY)];

const below = (...limits: readonly string[]): Crafted => craft(limits, root);

const REFUSED: readonly (readonly [what: string, make: () => Crafted, says: RegExp | 'OpenSSL'])[] = [
  ['the ID of a trust domain', () => craft([...LEAF, uri('spiffe://home.org')], root), /no SPIFFE ID/],
  ['two URIs', () => craft([...LEAF, `${NAMED},URI:https://home.org`], root), /several URIs/],
  ['a port', () => craft([...LEAF, uri('spiffe://home.org:443/a')], root), /no SPIFFE ID/],
  ['a user', () => craft([...LEAF, uri('spiffe://me@home.org/a')], root), /no SPIFFE ID/],
  ['a query', () => craft([...LEAF, uri('spiffe://home.org/a?b')], root), /no SPIFFE ID/],
  ['a fragment', () => craft([...LEAF, uri('spiffe://home.org/a\\#b')], root), /no SPIFFE ID/],
  ['a percent sign', () => craft([...LEAF, uri('spiffe://home.org/%61')], root), /no SPIFFE ID/],
  ['an address', () => craft([...LEAF, uri('spiffe://[fe80\\:\\:1]/a')], root), /no SPIFFE ID/],
  ['upper case', () => craft([...LEAF, uri('spiffe://Home.org/a')], root), /no SPIFFE ID/],
  ['dots for a segment', () => craft([...LEAF, uri('spiffe://home.org/a/../b')], root), /no SPIFFE ID/],
  ['a slash at its end', () => craft([...LEAF, uri('spiffe://home.org/a/')], root), /no SPIFFE ID/],
  [
    'a URI inside another name',
    () => craft([...LEAF, 'subjectAltName=@names', '[names]', `DNS.1=a, URI:${ID}, DNS:b`], root),
    /no SPIFFE ID/,
  ],
  ['an authority of another domain', () => craft([...LEAF, NAMED], other), 'OpenSSL'],
  ['an issuer that is not an authority', () => craft([...LEAF, NAMED], below(...LEAF)), 'OpenSSL'],
];

/** The folder of a workload that trusts `home.org`. The bundle of another domain is ignored. */
function folderOf({ certificate, above, key }: Crafted) {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'spiffe'));
  volume.publish({
    'credential-bundle.private-key.x509.pem': `${key}${certificate}${above}`,
    'home.org.spiffe-trust-bundle.x509.pem': root.certificate,
    'other.org.spiffe-trust-bundle.x509.pem': other.certificate,
  });
  const folder = spiffeFolder(volume.directory);
  onTestFinished(() => folder.close());
  return folder;
}

const workload = () => folderOf(craft([...LEAF, uri('spiffe://home.org/workload')], root));

interface Served {
  readonly port: number;
  readonly refusals: readonly string[];
}

async function serve(authorize: () => boolean = () => true, maxVersion?: SecureVersion): Promise<Served> {
  const refusals: string[] = [];
  const https = createServer({ ...(maxVersion && { maxVersion }) }, ({ socket }, response) =>
    response.end(spiffeIdOf(socket as TLSSocket)?.uri),
  );
  const onRefused = ({ message }: Error): void => void refusals.push(message);
  await serveSpiffe(https, workload(), { authorize, onRefused });
  return { port: await listen(https), refusals };
}

/** A request of a client that verifies nothing. */
function ask(port: number, { certificate, above, key }: Crafted): Promise<{ readonly text: string }> {
  const agent = new Agent({ cert: certificate + above, key, rejectUnauthorized: false });
  onTestFinished(() => agent.destroy());
  return askHttps({ port, ca: undefined as never }, agent);
}

describe.each(REFUSED)('a certificate with %s', (_what, make, says) => {
  test('admits no client', async () => {
    const { port, refusals } = await serve();
    await expect(ask(port, make())).rejects.toThrow();
    // OpenSSL refuses a client before this library sees it.
    expect(refusals).toEqual(says === 'OpenSSL' ? [] : [expect.stringMatching(says)]);
  });

  test('admits no server', async () => {
    const { certificate, above, key } = make();
    const requests: string[] = [];
    const https = createServer({ cert: certificate + above, key }, (_request, response) => {
      requests.push('request');
      response.end();
    });
    const port = await listen(https);
    const folder = workload();
    await folder.get();
    const options = { authorize: () => true };
    const agent = spiffeAgent(folder, options);
    const refusal =
      says === 'OpenSSL' ? {} : { code: 'ERR_TLS_PEER', message: expect.stringMatching(says) as string };
    await expect(askHttps({ port, ca: undefined as never }, agent)).rejects.toMatchObject(refusal);
    const dispatcher = await spiffeDispatcher(folder, options);
    onTestFinished(() => dispatcher.destroy());
    await expect(request(`https://127.0.0.1:${port}`, { dispatcher })).rejects.toMatchObject(refusal);
    expect(requests).toEqual([]);
  });
});

test('a certificate that only just follows the rules is admitted', async () => {
  const { port } = await serve();
  const longest = `spiffe://home.org/a/...${'/B-_.9'.repeat(10)}`;
  const names = `subjectAltName=URI:${longest},DNS:home.org`;
  const authority = below(...AUTHORITY, 'extendedKeyUsage=clientAuth');
  for (const extensions of [[...LEAF, names], [names]]) {
    expect((await ask(port, craft(extensions, authority))).text).toBe(longest);
  }
});

test.each<[string, () => unknown, RegExp]>([
  ['a promise', () => Promise.resolve(false), /must return a boolean, got/],
  ['a number', () => 1, /must return a boolean, got/],
  ['nothing', () => undefined, /must return a boolean, got/],
  [
    'an error',
    () => {
      throw new Error('no policy');
    },
    /^no policy$/,
  ],
  [
    'null as an error',
    () => {
      // eslint-disable-next-line @typescript-eslint/only-throw-error -- what JavaScript allows
      throw null;
    },
    /null/,
  ],
])('an authorizer that gives %s admits nobody', async (_what, authorize, says) => {
  const { port, refusals } = await serve(authorize as () => boolean);
  await expect(ask(port, craft([...LEAF, NAMED], root))).rejects.toThrow();
  expect(refusals).toEqual([expect.stringMatching(says)]);
});

test('a client that was admitted cannot present another certificate on the same connection', async () => {
  const { port } = await serve(() => true, 'TLSv1.2');
  const { certificate: cert, key } = craft([...LEAF, NAMED], root);
  const socket = connect({ port, host: '127.0.0.1', cert, key, rejectUnauthorized: false });
  onTestFinished(() => void socket.destroy());
  await once(socket, 'secureConnect');
  const ended = new Promise((resolve) => socket.once('error', resolve));
  const renegotiated = new Promise((resolve) => socket.renegotiate({ rejectUnauthorized: false }, resolve));
  await expect(Promise.race([ended, renegotiated])).resolves.toMatchObject({
    message: expect.stringMatching(/renegotiation/) as string,
  });
});
