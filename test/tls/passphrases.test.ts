/** Keys that a passphrase protects, with the passphrase in a file of its own. */
import { execFileSync } from 'node:child_process';
import { createCipheriv, createHash, createPrivateKey } from 'node:crypto';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { inspect } from 'node:util';

import fc from 'fast-check';
import { CertificateSigner } from '@resilient-watcher/local-api-server';
import { FakeClock, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import { serveTls, TlsFiles, type TlsError, type TlsPaths } from 'resilient-watcher/tls';
import { describe, expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';
import { askHttps, listen } from '../support/tls-clients.js';

const root = new CertificateSigner({ name: 'root' });
const intermediate = new CertificateSigner({ name: 'intermediate', issuer: root });
const first = leaf();
const PASSPHRASE = 'pä$$ wörd';

interface Pair {
  readonly chain: string;
  readonly key: string;
}

function leaf(): Pair {
  return intermediate.issue({ dnsNames: ['localhost'], commonName: 'leaf' });
}

function openssl(args: readonly string[], input: string): Buffer {
  return execFileSync('openssl', args, { input, stdio: ['pipe', 'pipe', 'pipe'] });
}

/** By default 2,048, in DER. */
const ITERATIONS = [0x02, 0x02, 0x08, 0x00];

/** Other numbers for the derivation of a key, so large that it would take minutes. The salt before them is shorter for it. */
function withNumbers(der: Buffer, numbers: readonly number[], others: readonly number[]): Buffer {
  const at = der.indexOf(Buffer.from(numbers));
  const longer = others.length - numbers.length;
  const changed = Buffer.from(der);
  changed[der.lastIndexOf(Buffer.from([0x04, 0x08]), at) + 1] = 8 - longer;
  changed.set(others, at - longer);
  return changed;
}

interface Mounted {
  readonly volume: KubeletVolume;
  readonly files: TlsFiles;
  readonly clock: FakeClock;
  readonly events: readonly string[];
}

function mount(contents: Record<string, string | Buffer>, ...names: (keyof TlsPaths)[]): Mounted {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'tls'));
  volume.publish(contents);
  const paths = Object.fromEntries(names.map((name) => [name, volume.path(name)]));
  const clock = new FakeClock(Date.now());
  const files = new TlsFiles(paths, { backend: new ScriptedBackend(), resyncIntervalMs: 0, clock });
  onTestFinished(() => files.close());
  return { volume, files, clock, events: eventsOf(files) };
}

function eventsOf(files: TlsFiles): string[] {
  const events: string[] = [];
  files.on('change', () => events.push('change'));
  files.on('warning', ({ message }) => events.push(message));
  files.on('rejected', ({ error }) => events.push((error as TlsError).code));
  return events;
}

async function isServed(files: TlsFiles): Promise<void> {
  const server = createServer((_request, response) => response.end('hello'));
  await serveTls(server, files);
  const port = await listen(server);
  expect((await askHttps({ port, ca: root.certificate })).text).toBe('hello');
}

describe.each([
  ['PKCS#8', ['pkcs8', '-topk8']],
  ['PKCS#8 with 3DES', ['pkcs8', '-topk8', '-v1', 'PBE-SHA1-3DES']],
  ['the format of OpenSSL', ['ec', '-aes256']],
])('a key in %s', (_name, command) => {
  const locked = openssl([...command, '-passout', `pass:${PASSPHRASE}`], first.key).toString();

  test('is opened with its passphrase, and handed out without one', async () => {
    const { files } = mount(
      { cert: first.chain, key: locked, passphrase: `${PASSPHRASE}\n` },
      ...(['cert', 'key', 'passphrase'] as const),
    );
    const { key, cert } = await files.get();
    expect([key?.toString(), cert?.toString()]).toEqual([first.key, first.chain]);
    await isServed(files);
  });

  test('may be in a credential bundle', async () => {
    const { files } = mount(
      { bundle: `${locked}${first.chain}`, passphrase: PASSPHRASE },
      'bundle',
      'passphrase',
    );
    await isServed(files);
  });

  test('is rejected with another passphrase or none, of which nothing is shown', async () => {
    const { files, volume } = mount(
      { cert: first.chain, key: locked, passphrase: 'not this' },
      ...(['cert', 'key', 'passphrase'] as const),
    );
    await files.start();
    const { rejected } = files.status();
    expect(rejected).toMatchObject({ code: 'ERR_TLS_MISMATCH' });
    expect(rejected?.message).toMatch(
      /passphrase in ".+passphrase" does not open the private key in ".+key"/,
    );
    expect(inspect(files, { depth: 9 }) + JSON.stringify(files)).not.toMatch(/not this|PRIVATE KEY-/);
    const without = new TlsFiles({ cert: volume.path('cert'), key: volume.path('key') });
    onTestFinished(() => without.close());
    await expect(without.get()).rejects.toThrow(/is protected by a passphrase; give the file/);
  });
});

test.each([
  ['PBKDF2', [], ITERATIONS, [0x02, 0x04, 0x7f, 0xff, 0xff, 0xff], 2_147_483_647],
  [
    'scrypt',
    ['-scrypt'],
    [0x02, 0x01, 0x08, 0x02, 0x01, 0x01],
    [0x02, 0x01, 0x08, 0x02, 0x01, 0x7f],
    16_646_144,
  ],
])(
  'a key in PKCS#8 that asks for minutes of %s is rejected',
  async (_name, flags, numbers, others, count) => {
    const locked = openssl(['pkcs8', '-topk8', ...flags, '-outform', 'DER', '-passout', 'pass:x'], first.key);
    const body = withNumbers(locked, numbers, others).toString('base64').replace(/.{64}/g, '$&\n');
    const key = `-----BEGIN ENCRYPTED PRIVATE KEY-----\n${body}\n-----END ENCRYPTED PRIVATE KEY-----\n`;
    const { files } = mount({ cert: first.chain, key, passphrase: 'x' }, 'cert', 'key', 'passphrase');
    await files.start();
    expect(files.status().rejected?.code).toBe('ERR_TLS_PEM');
    expect(files.status().rejected?.message).toContain(
      `derived by ${count} iterations; at most 1000000 are made`,
    );
  },
);

/** An EncryptedPrivateKeyInfo whose key takes some 10 s to derive. */
function expensive(): Buffer {
  const locked = openssl(['pkcs8', '-topk8', '-outform', 'DER', '-passout', 'pass:x'], first.key);
  return withNumbers(locked, ITERATIONS, [0x02, 0x04, 0x01, 0x31, 0x2d, 0x00]);
}

function pem(label: string, der: Buffer, headers = '', lineBreak = '\n'): string {
  const body = der.toString('base64').replace(/.{64}(?=.)/g, `$&${lineBreak}`);
  return [`-----BEGIN ${label}-----`, `${headers}${body}`, `-----END ${label}-----`, ''].join(lineBreak);
}

/** Encrypted once more, in the format of OpenSSL before PKCS#8. */
function withDekInfo(label: string, der: Buffer): string {
  const iv = Buffer.alloc(16, 7);
  const key = createHash('md5').update('x').update(iv.subarray(0, 8)).digest();
  const cipher = createCipheriv('aes-128-cbc', key, iv);
  const text = Buffer.concat([cipher.update(der), cipher.final()]);
  const dekInfo = `DEK-Info: AES-128-CBC,${iv.toString('hex').toUpperCase()}`;
  return pem(label, text, `Proc-Type: 4,ENCRYPTED\n${dekInfo}\n\n`);
}

/** With lengths in the longest form, or in none. */
function asBer(der: Buffer, length: 'long' | 'none'): Buffer {
  const content = der.subarray(der[1] === 0x82 ? 4 : 3);
  if (length === 'none') return Buffer.concat([Buffer.from([0x30, 0x80]), content, Buffer.alloc(2)]);
  const header = Buffer.from([0x30, 0x88, 0, 0, 0, 0, 0, 0, content.length >> 8, content.length & 255]);
  return Buffer.concat([header, content]);
}

// OpenSSL 3.5 opens some of these, and would take ten seconds for each.
describe.each([
  'ENCRYPTED PRIVATE KEY',
  'PRIVATE KEY',
  'RSA PRIVATE KEY',
  'EC PRIVATE KEY',
  'ANY PRIVATE KEY',
])('a key that takes too long to open is rejected before that, with the label "%s"', (label) => {
  const TOO_MANY = /20000000 iterations; at most 1000000 are made/;
  test.each<[name: string, key: string, says?: RegExp]>([
    ['PEM', pem(label, expensive()), TOO_MANY],
    ['PEM with the line breaks of Windows', pem(label, expensive(), '', '\r\n'), TOO_MANY],
    ['BER', pem(label, asBer(expensive(), 'none')), TOO_MANY],
    ['BER with long lengths', pem(label, asBer(expensive(), 'long')), TOO_MANY],
    [
      'DER that something follows',
      pem(label, Buffer.concat([expensive(), Buffer.from([4, 0, 2, 1, 1])])),
      TOO_MANY,
    ],
    ['PEM with a header', pem(label, expensive(), 'Comment: none\n\n')],
    ['a key in the format of OpenSSL', withDekInfo(label, expensive()), /is not PKCS#8|does not open/],
  ])('as %s', async (_name, key, says = /Cannot parse/) => {
    const { files } = mount({ cert: first.chain, key, passphrase: 'x' }, 'cert', 'key', 'passphrase');
    await files.start();
    expect(files.status().rejected?.message).toMatch(says);
  });
});

test('a key in PKCS#8 that is encrypted is opened with the label PRIVATE KEY as well', async () => {
  const key = openssl(['pkcs8', '-topk8', '-passout', 'pass:x'], first.key)
    .toString()
    .replaceAll('ENCRYPTED ', '');
  const { files } = mount({ cert: first.chain, key, passphrase: 'x' }, 'cert', 'key', 'passphrase');
  expect((await files.get()).key?.toString()).toBe(first.key);
});

test('a key in PKCS#8 that scrypt protects is opened', async () => {
  const key = openssl(['pkcs8', '-topk8', '-scrypt', '-passout', 'pass:x'], first.key);
  const { files } = mount({ cert: first.chain, key, passphrase: 'x' }, 'cert', 'key', 'passphrase');
  expect((await files.get()).key?.toString()).toBe(first.key);
});

test('a passphrase that is no path is told as such', async () => {
  const key = openssl(['pkcs8', '-topk8', '-passout', 'pass:x'], first.key);
  const { files } = mount({ cert: first.chain, key }, 'cert', 'key', 'passphrase');
  await files.start();
  expect(files.status().rejected).toMatchObject({
    code: 'ERR_TLS_MISSING',
    message: expect.stringMatching(
      /where TlsFiles reads the passphrase; the option "passphrase" is a path$/,
    ) as string,
  });
});

test('paths that are no set are refused with those that were given', () => {
  const given: TlsPaths = { bundle: '/a', cert: '/b' };
  expect(() => new TlsFiles(given)).toThrow(/^TlsFiles: paths must name cert and key, .*; got cert, bundle$/);
  expect(() => new TlsFiles({})).toThrow(/; got none$/);
});

test.each([
  ['DER', Buffer.from(first.key.replace(/-.+-|\n/g, ''), 'base64')],
  ['another format', 'hello'],
])('a key in %s says what to do with it', async (_name, key) => {
  const { files } = mount({ cert: first.chain, key }, 'cert', 'key');
  await expect(files.get()).rejects.toThrow(/openssl pkey .+; a keystore needs the option "parse"/);
});

test.each([
  [{ passphrase: 'a' }],
  [{ ca: 'a', passphrase: 'b' }],
  [{ bundle: 'a', cert: 'b', key: 'c' }],
  [{ bundle: 'a', key: 'b' }],
])('%o are refused as paths', (given) => {
  expect(() => new TlsFiles(given)).toThrow(/cert and key, or bundle, each/);
});

test('a passphrase is the text of its file but for one line end, whatever blanks it has', async () => {
  const passphrases = fc
    .array(fc.constantFrom(' ', '\t', 'a', 'ä', '\r', '\n', '\u00a0'), { minLength: 1, maxLength: 6 })
    .map((characters) => characters.join(''))
    .filter((text) => !text.endsWith('\n') && !text.endsWith('\r'));
  await fc.assert(
    fc.asyncProperty(passphrases, fc.constantFrom('', '\n', '\r\n'), async (passphrase, end) => {
      const format = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase } as const;
      const key = createPrivateKey(first.key).export(format);
      const contents = { cert: first.chain, key, passphrase: `${passphrase}${end}` };
      const { files } = mount(contents, ...(['cert', 'key', 'passphrase'] as const));
      expect((await files.get()).key?.toString()).toBe(first.key);
      await files.close();
    }),
    { numRuns: 20 },
  );
});
