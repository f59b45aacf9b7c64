/** Chains and CA bundles that only some peers accept: they are used, with a warning that names the certificate. */
import { createServer } from 'node:https';
import { join } from 'node:path';

import { CertificateSigner } from '@resilient-watcher/local-api-server';
import { FakeClock, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import { serveTls, TlsFiles, type TlsError } from 'resilient-watcher/tls';
import { describe, expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';
import { askHttps, listen } from '../support/tls-clients.js';
import { secretOf } from '../support/tls-sets.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** How long the certificate of an authority is valid, and since when. */
const AUTHORITY_MS = 3_650 * DAY_MS;
const NOW = Date.now();

/** An authority whose certificates are made at another time, or now. */
function authority(name: string, issuer?: CertificateSigner, at = NOW): CertificateSigner {
  return new CertificateSigner({ name, issuer, clock: { now: () => at } });
}

const root = authority('root');
const stranger = authority('stranger', root);
const leafOf = (issuer: CertificateSigner): { cert: string; key: string } => {
  const { chain, key } = issuer.issue({
    dnsNames: ['localhost'],
    commonName: 'leaf',
    notBefore: NOW - HOUR_MS,
  });
  return { cert: chain, key };
};

interface Mounted {
  readonly volume: KubeletVolume;
  readonly files: TlsFiles;
  readonly clock: FakeClock;
  /** The codes of what was rejected, `change`, and the texts of warnings. */
  readonly events: readonly string[];
}

function mount(first: Record<string, string>): Mounted {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'tls'));
  volume.publish(first);
  const clock = new FakeClock(NOW);
  const options = { backend: new ScriptedBackend(), resyncIntervalMs: 0, clock };
  const files = new TlsFiles(volume.directory, options);
  const events: string[] = [];
  files.on('change', () => events.push('change'));
  files.on('rejected', ({ error }) => events.push((error as TlsError).code));
  files.on('warning', ({ code, message }) => events.push(`${code}: ${message}`));
  onTestFinished(() => files.close());
  return { volume, files, clock, events };
}

describe('a chain that only some clients accept is used, with one warning:', () => {
  const expired = authority('expired', root, NOW - AUTHORITY_MS - DAY_MS);
  const early = authority('early', root, NOW + 9 * DAY_MS);
  const noAuthority = new CertificateSigner({ name: 'no authority', issuer: root, mayIssue: false });
  const namesake = authority('stranger', root);
  const below = leafOf(namesake);
  const direct = leafOf(root);
  const copies = Array.from({ length: 300 }, () => stranger.renewed()).join('');
  const cases: [name: string, pair: { cert: string; key: string }, says: RegExp][] = [
    [
      'with an issuer that has expired',
      leafOf(expired),
      /CN=expired \(issued by CN=root\) in the chain of ".+tls\.crt" expired at 20/,
    ],
    ['with one that is not valid yet', leafOf(early), /CN=early \(.+\) .+ is not valid before 20/],
    [
      'without the issuer of the certificate',
      { ...direct, cert: `${direct.cert}${stranger.certificate}` },
      /has no authority that has issued CN=leaf \(issued by CN=root\), but CN=stranger \(issued by CN=root\)/,
    ],
    [
      'with another authority of the same name',
      { ...below, cert: below.cert.replace(namesake.certificate, stranger.certificate) },
      /has no authority that has issued CN=leaf \(issued by CN=stranger\), but CN=stranger/,
    ],
    [
      'whose issuer is no authority',
      leafOf(noAuthority),
      /has no authority that has issued CN=leaf \(issued by CN=no authority\), but CN=no authority/,
    ],
    [
      'larger than OpenSSL accepts',
      { ...direct, cert: `${direct.cert}${copies}` },
      /has 301 certificates of \d{6} bytes; clients that use OpenSSL reject more than 102400/,
    ],
  ];
  test.each(cases)('%s', async (_name, pair, says) => {
    const { volume, files, events } = mount(secretOf(direct));
    await files.start();
    volume.publish(secretOf(pair));
    await files.check();
    const warnings = files.status().warnings.map(({ code, message }) => `${code}: ${message}`);
    expect(warnings.join('\n')).toMatch(says);
    expect(events).toEqual(['change', 'change', ...warnings]);
    expect(files.status().rejected).toBeNull();
    await expect(files.get()).resolves.toBe(files.current);

    // The same certificate is warned of once, whatever else changes.
    volume.publish(secretOf(pair, root.certificate));
    await files.check();
    expect(events.slice(2 + warnings.length)).toEqual(['change']);
    volume.publish(secretOf(direct));
    await files.check();
    expect(files.status().warnings).toEqual([]);
  });
});

test('a client that knows another certificate of an expired issuer connects', async () => {
  let now = NOW - AUTHORITY_MS - DAY_MS;
  const renewed = new CertificateSigner({ name: 'renewed', issuer: root, clock: { now: () => now } });
  const { files, events } = mount(secretOf(leafOf(renewed)));
  const server = createServer((_request, response) => response.end('hello'));
  await serveTls(server, files);
  expect(events[1]).toContain('CN=renewed');
  now = NOW;
  const port = await listen(server);
  const ca = `${root.certificate}${renewed.renewed()}`;
  expect((await askHttps({ port, ca })).text).toBe('hello');
});

test('no chain is warned of that every client with its root accepts', async () => {
  const below = authority('below', authority('intermediate', root));
  const { cert, key } = leafOf(below);
  const own = new CertificateSigner().issue();
  const { volume, files, events } = mount(secretOf({ cert, key }));
  await files.start();
  for (const pair of [
    { cert: `${cert}${root.certificate}`, key },
    // An old root beside the new ones: clients have their own.
    { cert: `${cert}${authority('old', undefined, NOW - 2 * AUTHORITY_MS).certificate}`, key },
    { cert: `${cert}${cert}`, key },
    { cert: own.chain, key: own.key },
  ]) {
    volume.publish(secretOf(pair, root.certificate));
    await files.check();
  }
  expect(events).toEqual(Array(5).fill('change'));
});

test('an issuer that expires while the certificate is in use is warned of before and at that time, and nothing else happens', async () => {
  const ending = authority('ending', root, NOW - AUTHORITY_MS + 10 * HOUR_MS);
  const { files, clock, events } = mount(secretOf(leafOf(ending)));
  await files.start();
  await clock.advance(5 * HOUR_MS);
  expect(events).toEqual(['change']);
  await clock.advance(2 * HOUR_MS);
  expect(events[1]).toMatch(/CN=ending \(issued by CN=root\) .+ expires at .+, before the first certificate/);
  await clock.advance(4 * HOUR_MS);
  expect(events[2]).toMatch(/CN=ending \(issued by CN=root\) .+ expired at/);
  expect(files.health()).toEqual({});
  expect(files.status()).toMatchObject({ expired: false, rejected: null, changes: 1 });
  await expect(files.get()).resolves.toBe(files.current);
  await clock.advance(DAY_MS);
  expect(events).toHaveLength(3);
  await expect(files.get()).rejects.toMatchObject({ code: 'ERR_TLS_EXPIRED' });
});

describe('a CA bundle in which every certificate has expired', () => {
  const old = authority('old', undefined, NOW - 2 * AUTHORITY_MS).certificate;
  const older = authority('older', undefined, NOW - 3 * AUTHORITY_MS).certificate;
  const says = /^certificate: Every certificate in the CA bundle ".+ca\.crt" has expired, .+CN=old, at 20/;

  test('does not keep the new certificate beside it from being used; the last bundle stays', async () => {
    const { volume, files, events } = mount(secretOf(leafOf(root), root.certificate));
    const before = await files.get();
    const renewed = leafOf(root);
    volume.publish(secretOf(renewed, `${older}${old}`));
    await files.check();
    expect(events).toEqual(['change', 'change', expect.stringMatching(says)]);
    expect(files.current?.cert?.toString()).toBe(renewed.cert);
    expect(files.current?.authorities).toEqual(before.authorities);
  });

  test('is used if there has been none: a server that verifies no client works', async () => {
    const { files, events } = mount(secretOf(leafOf(root), old));
    const server = createServer((_request, response) => response.end('hello'));
    await serveTls(server, files);
    const port = await listen(server);
    expect((await askHttps({ port, ca: root.certificate })).text).toBe('hello');
    expect(events).toEqual(['change', expect.stringMatching(says)]);
  });

  test('is used within a minute when the clock was wrong and is set', async () => {
    const { volume, files, clock, events } = mount(secretOf(leafOf(root), root.certificate));
    await files.start();
    const other = authority('other', undefined, NOW - AUTHORITY_MS + 2 * HOUR_MS).certificate;
    clock.jump(3 * HOUR_MS);
    volume.publish(secretOf(leafOf(root), other));
    await files.check();
    clock.jump(-3 * HOUR_MS);
    await clock.advance(60_000);
    expect(files.current?.authorities.map(({ subject }) => subject)).toEqual(['CN=other']);
    expect(events).toHaveLength(4);
    expect(files.status().warnings).toEqual([]);
  });

  test('is rejected where there is nothing else to use', async () => {
    const { volume } = mount({ 'ca.crt': old });
    const files = new TlsFiles({ ca: volume.path('ca.crt') });
    onTestFinished(() => files.close());
    await expect(files.get()).rejects.toMatchObject({ cause: { code: 'ERR_TLS_CA' } });
  });
});
