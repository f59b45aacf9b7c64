/** What `TlsFiles` hands out, and what it refuses. */
import { execFileSync } from 'node:child_process';
import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { Agent, createServer } from 'node:https';
import { join } from 'node:path';
import { inspect } from 'node:util';

import { FakeClock, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import {
  serveTls,
  TlsFiles,
  type TlsError,
  type TlsFilesOptions,
  type TlsPaths,
} from 'resilient-watcher/tls';
import { describe, expect, onTestFinished, test } from 'vitest';

import { createAuthority, createServerPair, type CertificatePair } from '../support/certificates.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { askHttps, listen } from '../support/tls-clients.js';
import { fingerprintOf, secretOf } from '../support/tls-sets.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const NOW = Date.now();
const inDays = (days: number): Date => new Date(NOW + days * DAY_MS);

const root = createAuthority('root');
const intermediate = createAuthority('intermediate', root);
const good = createServerPair(root);
const other = createServerPair(root);
const below = createServerPair(intermediate);
const old = createServerPair(root, { notBefore: inDays(-30), notAfter: inDays(-1) });
// Not tomorrow: what waits for it looks every minute.
const early = createServerPair(root, { notBefore: inDays(1 / 24), notAfter: inDays(30) });

const chain = (...certificates: string[]): string => certificates.map((pem) => pem.trim()).join('\n');

const rsa = generateKeyPairSync('rsa', {
  modulusLength: 1024, // which is soon made
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});
const locked = execFileSync('openssl', ['pkcs8', '-topk8', '-passout', 'pass:secret'], {
  input: good.key,
  encoding: 'utf8',
});
const der = new X509Certificate(good.cert).raw;
const derKey = createPrivateKey(other.key).export({ type: 'pkcs8', format: 'der' });
const weak = rsaPair(512);
const small = rsaPair(1024);

function rsaPair(bits: number): CertificatePair {
  const arguments_ = ['req', '-x509', '-newkey', `rsa:${bits}`, '-nodes', '-subj', '/CN=weak', '-days', '30'];
  const text = execFileSync('openssl', [...arguments_, '-keyout', '-'], { encoding: 'utf8', stdio: 'pipe' });
  // Both are in one text, and each is found in it.
  return { cert: text, key: text };
}

/** As an editor of Windows writes it, with a byte order mark. */
function secretIn(encoding: 'utf16le' | 'utf16be'): Record<string, Buffer> {
  const bytesOf = (pem: string): Buffer => {
    const bytes = Buffer.from(`\ufeff${pem}`, 'utf16le');
    return encoding === 'utf16le' ? bytes : bytes.swap16();
  };
  return { 'tls.crt': bytesOf(other.cert), 'tls.key': bytesOf(other.key) };
}

function commentedOut(pem: string): string {
  return pem.replace(/^/gm, '# ') + '\n';
}

/** The same certificate, whose month of expiry is the 13th. */
function undated(pem: string): string {
  const bytes = new X509Certificate(pem).raw;
  // The second UTCTime, of 13 characters.
  const at = bytes.lastIndexOf(Buffer.from([0x17, 13]));
  bytes.write('13', at + 4);
  const body = bytes.toString('base64').replace(/.{64}/g, '$&\n');
  return `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----\n`;
}

interface WatchedFiles {
  readonly volume: KubeletVolume;
  readonly files: TlsFiles;
  readonly clock: FakeClock;
  readonly events: readonly string[];
}

/** A mounted Secret whose changes are seen when the test checks. */
function watchedFiles(options: TlsFilesOptions = {}, paths?: (directory: string) => TlsPaths): WatchedFiles {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'tls'));
  // Certificates of this very second are valid.
  const clock = new FakeClock(Date.now() + 1_000);
  const files = new TlsFiles(paths ? paths(volume.directory) : volume.directory, {
    backend: new ScriptedBackend(),
    resyncIntervalMs: 0,
    clock,
    ...options,
  });
  const events: string[] = [];
  files.on('change', ({ current }) => events.push(`change ${current.fingerprint256?.slice(0, 8) ?? 'CA'}`));
  files.on('rejected', ({ error }) => events.push((error as TlsError).code));
  files.on('expiring', () => events.push('expiring'));
  files.on('expired', () => events.push('expired'));
  onTestFinished(() => files.close());
  return { volume, files, clock, events };
}

describe('a bad set is rejected and the last good one stays:', () => {
  const cases: [name: string, secret: Record<string, string | Uint8Array>, code: string, says: RegExp][] = [
    ['no key', { 'tls.crt': other.cert }, 'ERR_TLS_MISSING', /no file ".+tls\.key"/],
    ['no certificate', { 'tls.key': other.key }, 'ERR_TLS_MISSING', /no file ".+tls\.crt"/],
    ['an empty certificate', { ...secretOf(other), 'tls.crt': '' }, 'ERR_TLS_PEM', /is empty/],
    ['an empty key', { ...secretOf(other), 'tls.key': '' }, 'ERR_TLS_PEM', /is empty/],
    [
      'the key of another certificate',
      secretOf({ cert: other.cert, key: good.key }),
      'ERR_TLS_MISMATCH',
      /is not that of the first certificate/,
    ],
    [
      'an RSA key beside an EC certificate',
      secretOf({ cert: other.cert, key: rsa.privateKey }),
      'ERR_TLS_MISMATCH',
      /is not that of the first certificate/,
    ],
    ['a key with a passphrase', secretOf({ cert: good.cert, key: locked }), 'ERR_TLS_PEM', /passphrase/],
    [
      'a DER key',
      { ...secretOf(other), 'tls.key': derKey },
      'ERR_TLS_PEM',
      /no private key in PEM; convert DER to PEM: openssl pkey/,
    ],
    [
      'certificate and key swapped',
      secretOf({ cert: other.key, key: other.cert }),
      'ERR_TLS_PEM',
      /tls\.crt" contains PEM of type "PRIVATE KEY"/,
    ],
    [
      'a certificate request',
      secretOf({ cert: other.cert.replaceAll('CERTIFICATE', 'CERTIFICATE REQUEST'), key: other.key }),
      'ERR_TLS_PEM',
      /contains PEM of type "CERTIFICATE REQUEST", but no complete certificate/,
    ],
    [
      'a certificate whose line breaks were escaped',
      secretOf({ cert: other.cert.replaceAll(/\r?\n/g, String.raw`\n`), key: other.key }),
      'ERR_TLS_PEM',
      /has no line breaks/,
    ],
    [
      'a public key',
      secretOf({ cert: other.cert, key: rsa.publicKey }),
      'ERR_TLS_PEM',
      /contains PEM of type "PUBLIC KEY", but no complete private key/,
    ],
    [
      'a broken key',
      secretOf({ cert: other.cert, key: other.key.replace(/M/, '!') }),
      'ERR_TLS_PEM',
      /Cannot parse the private key/,
    ],
    [
      'half a key',
      secretOf({ cert: other.cert, key: other.key.slice(0, 90) }),
      'ERR_TLS_PEM',
      /no complete private key/,
    ],
    [
      'half a certificate',
      secretOf({ cert: other.cert.slice(0, 90), key: other.key }),
      'ERR_TLS_PEM',
      /no complete certificate/,
    ],
    ...(['utf16le', 'utf16be'] as const).map((encoding): [string, Record<string, Buffer>, string, RegExp] => [
      `a certificate in ${encoding}`,
      secretIn(encoding),
      'ERR_TLS_PEM',
      /tls\.crt" is UTF-16; PEM is ASCII: iconv -f UTF-16/,
    ]),
    [
      'a DER certificate',
      { ...secretOf(good), 'tls.crt': der },
      'ERR_TLS_PEM',
      /no certificate in PEM; convert DER to PEM: openssl x509/,
    ],
    [
      'no PEM at all',
      secretOf({ cert: 'hello', key: other.key }),
      'ERR_TLS_PEM',
      /contains no certificate in PEM/,
    ],
    [
      'broken base64',
      secretOf({ cert: other.cert.replace(/M/, '!'), key: other.key }),
      'ERR_TLS_PEM',
      /Cannot parse the certificate/,
    ],
    [
      'the issuer first',
      secretOf({ cert: chain(root.cert, good.cert), key: good.key }),
      'ERR_TLS_MISMATCH',
      /is not that of the first certificate/,
    ],
    ['an expired certificate', secretOf(old), 'ERR_TLS_EXPIRED', /expired at/],
    ['a certificate of the next hour', secretOf(early), 'ERR_TLS_NOT_YET_VALID', /is not valid before/],
    [
      'a CA bundle that is none',
      secretOf(other, 'hello'),
      'ERR_TLS_CA',
      /ca\.crt" contains no certificate in PEM/,
    ],
  ];
  test.each(cases)('%s', async (_name, secret, code, says) => {
    const { volume, files, events } = watchedFiles();
    volume.publish(secretOf(good));
    await files.start();
    const kept = files.current;
    volume.publish(secret);
    await files.check();
    expect(events.slice(1)).toEqual([code]);
    expect(files.current).toBe(kept);
    await expect(files.get()).resolves.toBe(kept);
    const { rejected, rejections } = files.status();
    expect(rejected?.message).toMatch(says);
    expect({ rejections, code: rejected?.code }).toEqual({ rejections: 1, code });
    expect(JSON.stringify(files) + inspect(files)).not.toContain('PRIVATE KEY-');

    volume.publish(secretOf(other));
    await files.check();
    expect(files.current?.fingerprint256).toBe(fingerprintOf(other));
    expect(files.status().rejected).toBeNull();
  });

  test('a file of 100 MB, which is not read', async () => {
    const { volume, files, events } = watchedFiles();
    volume.publish(secretOf(good));
    truncateSync(volume.path('tls.crt'), 100 * 2 ** 20);
    await files.start();
    expect(events).toEqual(['ERR_TLS_PEM']);
    await expect(files.get()).rejects.toMatchObject({
      code: 'ERR_TLS_UNAVAILABLE',
      message: expect.stringMatching(/104857600 bytes/) as string,
      cause: { code: 'ERR_TLS_PEM' },
    });
  });
});

test('a key that OpenSSL takes only at its lowest security level is for servers with such ciphers, with a warning', async () => {
  const { volume, files } = watchedFiles();
  const warnings: string[] = [];
  files.on('warning', ({ message }) => warnings.push(message));
  volume.publish(secretOf(weak));
  await files.start();
  expect(warnings).toEqual([
    expect.stringMatching(/OpenSSL rejects .+ by default: .+ key too small.*SECLEVEL=0/),
  ]);
  expect(() => files.current?.secureContext).toThrow(/key too small/);
  await expect(serveTls(createServer(), files)).rejects.toThrow(/key too small/);
  volume.publish(secretOf(small));
  await files.check();
  const ciphers = 'DEFAULT@SECLEVEL=0';
  const server = createServer({ ciphers }, (_request, response) => response.end('hello'));
  await serveTls(server, files);
  const agent = new Agent({ ciphers, checkServerIdentity: () => undefined });
  expect((await askHttps({ port: await listen(server), ca: small.cert }, agent)).text).toBe('hello');
});

test.each([
  ['a comment that quotes a BEGIN line', 'Paste it between -----BEGIN CERTIFICATE----- and the END line.\n'],
  ['a block that is commented out', commentedOut(other.cert)],
  ['an END line', 'ends with -----END CERTIFICATE-----\n'],
  ['a byte order mark', '\ufeff'],
  [
    'another block, without a line break between them',
    '-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----',
  ],
])('%s before the chain, the key and the bundle does not matter', async (_name, text) => {
  const { volume, files } = watchedFiles();
  const { cert, key } = good;
  volume.publish(
    secretOf(
      { cert: text + cert, key: text.replaceAll('CERTIFICATE', 'PRIVATE KEY') + key },
      text + root.cert,
    ),
  );
  expect((await files.get()).fingerprint256).toBe(fingerprintOf(good));
  expect(files.current?.authorities).toHaveLength(1);
});

test('a date that cannot be read is a warning in an issuer, and refused in the certificate itself', async () => {
  const { volume, files, events } = watchedFiles();
  const warnings: string[] = [];
  files.on('warning', ({ message }) => warnings.push(message));
  volume.publish(
    secretOf({ cert: chain(below.cert, undated(intermediate.cert)), key: below.key }, undated(root.cert)),
  );
  await files.start();
  expect(warnings).toEqual([expect.stringMatching(/intermediate.+ has a date that cannot be read/)]);
  volume.publish(secretOf({ cert: undated(other.cert), key: other.key }));
  await files.check();
  expect(events).toEqual([expect.stringMatching(/^change/), 'ERR_TLS_PEM']);
  expect(files.status().rejected?.message).toMatch(/tls\.crt" has a date that cannot be read$/);
});

test('a set that was refused is parsed again only when its files or a date in it say so', async () => {
  const { volume, files, clock } = watchedFiles();
  volume.publish(secretOf({ cert: other.cert, key: good.key }));
  await files.start();
  await clock.advance(HOUR_MS);
  expect(clock.pending).toBe(0);
});

test('a chain is served in any order, with its root or without, and with a certificate twice', async () => {
  const { volume, files, events } = watchedFiles();
  const rest = [
    [intermediate.cert],
    [intermediate.cert, root.cert],
    [root.cert, intermediate.cert],
    [below.cert, intermediate.cert],
  ];
  const publish = (issuers: readonly string[]): void =>
    void volume.publish(secretOf({ cert: chain(below.cert, ...issuers), key: below.key }));
  publish(rest[0] ?? []);
  const server = createServer((_request, response) => response.end('hello'));
  await serveTls(server, files);
  const port = await listen(server);
  for (const issuers of rest) {
    publish(issuers);
    await files.check();
    expect((await askHttps({ port, ca: root.cert })).text).toBe('hello');
  }
  expect(events).toHaveLength(rest.length);
  expect(events.join()).not.toContain('ERR');
});

const SECRET_PATHS = (directory: string): TlsPaths => ({
  cert: join(directory, 'tls.crt'),
  key: join(directory, 'tls.key'),
});

test.each([
  ['certificate', SECRET_PATHS, 'ERR_TLS_EXPIRED'],
  ['CA bundle', (directory: string) => ({ ca: join(directory, 'ca.crt') }), 'ERR_TLS_CA'],
])(
  'a %s that is refused because the clock is ahead is used once the clock is set back',
  async (_, paths, code) => {
    const { volume, files, events, clock } = watchedFiles({}, paths);
    clock.jump(4_000 * DAY_MS);
    volume.publish(secretOf(good, root.cert));
    await files.start();
    await clock.advance(HOUR_MS);
    clock.jump(-HOUR_MS);
    await clock.advance(HOUR_MS);
    expect(events).toEqual([code]);
    clock.jump(-4_000 * DAY_MS);
    await clock.advance(HOUR_MS);
    expect(events.slice(1)).toEqual([expect.stringMatching(/^change/)]);
    expect(files.status().rejected).toBeNull();
    await expect(files.get()).resolves.toBe(files.current);
    await files.close();
    expect(clock.pending).toBe(0);
  },
);

test('a certificate about to expire is reported once, then its expiry with the reason; then get() rejects', async () => {
  const { volume, files, events, clock } = watchedFiles();
  const pair = createServerPair(root, { notBefore: inDays(-30), notAfter: inDays(30) });
  volume.publish(secretOf(pair));
  await files.start();
  await clock.advance(19 * DAY_MS);
  expect(events.slice(1)).toEqual([]);
  await clock.advance(2 * DAY_MS);
  expect(events.slice(1)).toEqual(['expiring']);
  await expect(files.get()).resolves.toBe(files.current);
  clock.jump(HOUR_MS);
  await clock.advance(HOUR_MS);
  volume.publish({ 'tls.crt': pair.cert });
  await files.check();
  const expiry = new Promise((resolve) => files.once('expired', resolve));
  await clock.advance(10 * DAY_MS);
  expect(events.slice(1)).toEqual(['expiring', 'ERR_TLS_MISSING', 'expired']);
  expect(await expiry).toMatchObject({
    current: files.current,
    error: { code: 'ERR_TLS_EXPIRED', cause: { code: 'ERR_TLS_MISSING' } },
  });
  await expect(files.get()).rejects.toMatchObject({ code: 'ERR_TLS_EXPIRED' });
  expect(files.status()).toMatchObject({ expired: true, available: true });
  volume.publish(secretOf(good));
  await files.check();
  await expect(files.get()).resolves.toBe(files.current);
});

describe.each(['directory', 'group'])('a pair in a plain %s that is renewed key first', (kind) => {
  function renewed(): Omit<WatchedFiles, 'volume'> & { put(name: string, pem: string): Promise<void> } {
    const directory = temporaryDirectory();
    const backend = new ScriptedBackend();
    const [key, cert] = [join(directory, 'tls.key'), join(directory, 'tls.crt')];
    const clock = new FakeClock(Date.now() + 1_000);
    const options = { backend, clock, resyncIntervalMs: 0, settleMs: 0 };
    const files = new TlsFiles(kind === 'group' ? { key, cert } : directory, options);
    onTestFinished(() => files.close());
    const events: string[] = [];
    files.on('change', () => events.push('change'));
    files.on('rejected', ({ error }) => events.push((error as TlsError).code));
    writeFileSync(key, good.key);
    writeFileSync(cert, good.cert);
    return {
      files,
      clock,
      events,
      async put(name, pem) {
        writeFileSync(join(directory, name), pem);
        backend.hint();
        await clock.advance(1);
      },
    };
  }

  test('is not rejected if the certificate follows within groupSettleMs', async () => {
    const { files, clock, events, put } = renewed();
    await files.start();
    await put('tls.key', other.key);
    await clock.advance(150);
    expect(files.status().rejected).toBeNull();
    await put('tls.crt', other.cert);
    await clock.advance(1_000);
    expect(events).toEqual(['change', 'change']);
    expect(files.current?.fingerprint256).toBe(fingerprintOf(other));
  });

  test('is rejected at once if what follows has another fault, and not again after that time', async () => {
    const { files, clock, events, put } = renewed();
    await files.start();
    await put('tls.key', other.key);
    await put('tls.crt', 'hello');
    expect(events).toEqual(['change', 'ERR_TLS_PEM']);
    await clock.advance(1_000);
    await files.check();
    expect(events).toEqual(['change', 'ERR_TLS_PEM']);
    await put('tls.crt', other.cert);
    expect(events.at(-1)).toBe('change');
  });

  test('is rejected after that time, however often the key is written, and at once by check()', async () => {
    const { files, clock, events, put } = renewed();
    await files.start();
    for (const { key } of [other, below]) {
      await put('tls.key', key);
      await clock.advance(150);
    }
    expect(events).toEqual(['change', 'ERR_TLS_MISMATCH']);
    expect(files.status().rejected).toMatchObject({ code: 'ERR_TLS_MISMATCH' });
    await put('tls.key', good.key);
    await put('tls.key', other.key);
    await files.check();
    expect(events).toEqual(['change', 'ERR_TLS_MISMATCH', 'ERR_TLS_MISMATCH']);
    await clock.advance(1_000);
    expect(events).toHaveLength(3);
  });
});

test('a CA with the label X509 CERTIFICATE is one of the bundle, since OpenSSL trusts it, and no longer after its removal', async () => {
  const { volume, files, events } = watchedFiles();
  const labelled = intermediate.cert.replaceAll('CERTIFICATE', 'X509 CERTIFICATE');
  volume.publish(secretOf(good, `${root.cert}\n${labelled}`));
  const { authorities } = await files.get();
  expect(authorities.map(({ subject }) => subject)).toEqual(['CN=root', 'CN=intermediate']);
  volume.publish(secretOf(good, root.cert));
  await files.check();
  expect(events).toHaveLength(2);
  expect(files.current?.authorities).toHaveLength(1);
});

test('a CA that OpenSSL trusts for some purposes only is refused, and does not become one for all', async () => {
  const { volume, files, events } = watchedFiles();
  volume.publish(secretOf(good, root.cert));
  await files.start();
  const restricted = execFileSync('openssl', ['x509', '-trustout', '-addreject', 'serverAuth'], {
    input: intermediate.cert,
    encoding: 'utf8',
  });
  volume.publish(secretOf(good, `${root.cert}\n${restricted}`));
  await files.check();
  expect(events.at(-1)).toBe('ERR_TLS_CA');
  expect(files.status().rejected?.message).toContain('openssl x509 -in FILE');
  expect(files.current?.authorities).toHaveLength(1);
});

test('OpenSSL receives the certificates and keys that were checked, and nothing else in the files', async () => {
  const { volume, files, events } = watchedFiles();
  const noisy = (pem: string): string =>
    `\ufeff# a comment\r\n${pem.replaceAll('\n', '\r\n')}\r\nBag Attributes\r\n`;
  volume.publish(secretOf({ cert: noisy(good.cert), key: noisy(good.key) }, `say-${root.cert}`));
  const { cert, key, ca } = await files.get();
  for (const bytes of [cert, key, ca]) expect(bytes?.toString()).toMatch(/^-----BEGIN [^#]+-----\s*$/);
  expect(new X509Certificate(ca ?? '').fingerprint256).toBe(new X509Certificate(root.cert).fingerprint256);
  // Other noise is no change.
  volume.publish(secretOf({ cert: noisy(`# new\n${good.cert}`), key: noisy(good.key) }, root.cert));
  await files.check();
  expect(events).toHaveLength(1);
});

test('cert-manager leaves ca.crt empty where there is no CA; a path that is given must not be', async () => {
  const byDirectory = watchedFiles();
  byDirectory.volume.publish(secretOf(good, ''));
  await expect(byDirectory.files.get()).resolves.toMatchObject({ ca: undefined });
  byDirectory.volume.publish(secretOf(other, '\n'));
  await byDirectory.files.check();
  expect(byDirectory.files.current?.fingerprint256).toBe(fingerprintOf(other));

  const byPath = watchedFiles({}, (directory) => ({ ca: join(directory, 'ca.crt') }));
  byPath.volume.publish({ 'ca.crt': '' });
  await byPath.files.start();
  expect(byPath.events).toEqual(['ERR_TLS_CA']);
});

test('files at any paths are one set: those of SPIFFE, a CA bundle alone, certificate and key in one file', async () => {
  const directory = temporaryDirectory();
  const at = (name: string): string => join(directory, name);
  mkdirSync(directory, { recursive: true });
  writeFileSync(at('svid.pem'), good.cert);
  writeFileSync(at('svid_key.pem'), good.key);
  writeFileSync(at('svid_bundle.pem'), `${root.cert}\n${root.cert}`);
  writeFileSync(at('both.pem'), `${good.cert}\n${good.key}`);
  const spiffe = new TlsFiles({ cert: at('svid.pem'), key: at('svid_key.pem'), ca: at('svid_bundle.pem') });
  const bundle = new TlsFiles({ ca: at('svid_bundle.pem') });
  const both = new TlsFiles({ cert: at('both.pem'), key: at('both.pem') });
  for (const files of [spiffe, bundle, both]) onTestFinished(() => files.close());
  expect((await spiffe.get()).fingerprint256).toBe(fingerprintOf(good));
  // A certificate that is in the bundle twice is in it once.
  expect((await spiffe.get()).ca?.toString().split('BEGIN')).toHaveLength(2);
  expect((await bundle.get()).cert).toBeUndefined();
  expect((await both.get()).fingerprint256).toBe(fingerprintOf(good));
});

test('ready() resolves to the first good set, or rejects at the end', async () => {
  const { volume, files } = watchedFiles();
  const ready = files.ready();
  const gone = new AbortController();
  const givenUp = expect(files.ready(gone.signal)).rejects.toThrow('enough');
  await files.start();
  gone.abort(new Error('enough'));
  await givenUp;
  volume.publish(secretOf(good));
  await files.check();
  expect((await ready).fingerprint256).toBe(fingerprintOf(good));
  const next = expect(files.changed()).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  await files.start();
  await files.close();
  await next;
  await expect(files.get()).rejects.toMatchObject({ code: 'ERR_CLOSED' });
});

test('a key is never printed', async () => {
  const { volume, files } = watchedFiles();
  volume.publish(secretOf(good, root.cert));
  const current = await files.get();
  const printed = [
    String(current),
    inspect(current, { depth: 9, showHidden: true }),
    JSON.stringify(current),
  ];
  expect(printed.join()).not.toContain('PRIVATE');
  expect(printed[0]).toMatch(/^TlsCredentials\(CN=localhost, expires 20/);
});

test.each([
  [undefined, /expected a directory or/],
  ['', /directory must be a non-empty string/],
  [{}, /cert and key, or bundle, each/],
  [{ cert: 'a' }, /cert and key, or bundle, each/],
  [{ cert: 'a', key: '' }, /key must be a non-empty string/],
])('%o is refused as files', (given, message) => {
  expect(() => new TlsFiles(given as string)).toThrow(message);
});

test.each(['certificate', 'CA bundle'])(
  'check() resolves when a new %s, alone in its volume, is current',
  async (which) => {
    const [identity, trust] = ['identity', 'trust'].map(
      (name) => new KubeletVolume(join(temporaryDirectory(), name)),
    );
    const publish = (pair: CertificatePair, ca: string): void => {
      if (which === 'certificate') identity?.publish(secretOf(pair));
      else trust?.publish({ 'ca.pem': ca });
    };
    identity?.publish(secretOf(good));
    trust?.publish({ 'ca.pem': root.cert });
    const paths = {
      cert: identity?.path('tls.crt'),
      key: identity?.path('tls.key'),
      ca: trust?.path('ca.pem'),
    };
    const files = new TlsFiles(paths);
    onTestFinished(() => files.close());
    const before = await files.get();
    publish(other, `${root.cert}\n${intermediate.cert}`);
    await files.check();
    expect(files.current?.digest).not.toBe(before.digest);
  },
);

test('a directory in place of one of several files is told at the start, and in get()', async () => {
  const directory = temporaryDirectory();
  mkdirSync(join(directory, 'tls.crt'));
  const files = new TlsFiles({ cert: join(directory, 'tls.crt'), key: join(directory, 'tls.key') });
  onTestFinished(() => files.close());
  const refusal = {
    code: 'ERR_TLS_UNAVAILABLE',
    message: expect.stringContaining('tls.crt" as part of a group: it is a directory') as string,
    cause: { code: 'ERR_TARGET_DIRECTORY' },
  };
  await expect(files.start()).rejects.toMatchObject(refusal);
  await expect(files.get()).rejects.toMatchObject(refusal);
});
