/** Keys that a passphrase protects, in PEM and in PKCS#12, with the passphrase in a file of its own. */
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { inspect } from 'node:util';

import fc from 'fast-check';
import { CertificateSigner } from '@resilient-watcher/local-api-server';
import { FakeClock, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import { httpsAgent, serveTls, TlsFiles, type TlsError, type TlsPaths } from 'resilient-watcher/tls';
import { describe, expect, onTestFinished, test } from 'vitest';

import { LEGACY, pkcs12 as pkcs12Of } from '../support/pkcs12.js';
import { rounds } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { askHttps, listen } from '../support/tls-clients.js';

const root = new CertificateSigner({ name: 'root' });
const intermediate = new CertificateSigner({ name: 'intermediate', issuer: root });
const [first, second] = [leaf(), leaf()];
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

/** With the authorities, as cert-manager adds them. */
function pkcs12({ chain, key }: Pair, passphrase: string, flags?: readonly string[]): Buffer {
  return pkcs12Of(`${key}${chain}${root.certificate}`, passphrase, flags);
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

test('a key in PKCS#8 that scrypt protects is opened', async () => {
  const key = openssl(['pkcs8', '-topk8', '-scrypt', '-passout', 'pass:x'], first.key);
  const { files } = mount({ cert: first.chain, key, passphrase: 'x' }, 'cert', 'key', 'passphrase');
  expect((await files.get()).key?.toString()).toBe(first.key);
});

test('a PKCS#12 file without its passphrase is told as such, and not as one that is damaged', async () => {
  const { files } = mount({ pfx: pkcs12(first, PASSPHRASE) }, 'pfx');
  await files.start();
  expect(files.status().rejected).toMatchObject({
    code: 'ERR_TLS_PEM',
    message: expect.stringMatching(/is protected by a passphrase; give the file/) as string,
  });
});

test('a passphrase that is no path is told as such', async () => {
  const { files } = mount({ pfx: pkcs12(first, PASSPHRASE) }, 'pfx', 'passphrase');
  await files.start();
  expect(files.status().rejected).toMatchObject({
    code: 'ERR_TLS_MISSING',
    message: expect.stringMatching(
      /where TlsFiles reads the passphrase; the option "passphrase" is a path$/,
    ) as string,
  });
});

test('paths that are no set are refused with those that were given', () => {
  const given: TlsPaths = { pfx: '/a', cert: '/b' };
  expect(() => new TlsFiles(given)).toThrow(/^TlsFiles: paths must name cert and key, .*; got cert, pfx$/);
  expect(() => new TlsFiles({})).toThrow(/; got none$/);
});

describe('a PKCS#12 file', () => {
  test.each<[name: string, flags: readonly string[]]>([
    ['of cert-manager (RC2 and 3DES)', LEGACY],
    ['with RC2 of 128 bits', ['-legacy', '-certpbe', 'PBE-SHA1-RC2-128', '-keypbe', 'PBE-SHA1-RC2-40']],
    ['with 3DES', ['-certpbe', 'PBE-SHA1-3DES', '-keypbe', 'PBE-SHA1-3DES', '-macalg', 'sha1']],
    ['with AES (Modern2023)', ['-macalg', 'sha256']],
    ['with AES of 128 bits and SHA-512', ['-certpbe', 'AES-128-CBC', '-keypbe', 'AES-192-CBC']],
    ['without encryption', ['-certpbe', 'NONE', '-keypbe', 'NONE']],
  ])('%s is read, whose authorities are not trusted', async (_name, flags) => {
    for (const passphrase of [PASSPHRASE, '']) {
      const { files, events } = mount(
        { pfx: pkcs12(first, passphrase, flags), passphrase },
        'pfx',
        'passphrase',
      );
      const { cert, key, ca } = await files.get();
      expect(key?.toString()).toBe(first.key);
      expect(cert?.toString()).toBe(`${first.chain}${root.certificate}`);
      expect(ca).toBeUndefined();
      await isServed(files);
      expect(events).toEqual(['change']);
    }
  });

  test.each([
    ['Ed25519', generateKeyPairSync('ed25519')],
    ['RSA', generateKeyPairSync('rsa', { modulusLength: 2_048 })],
  ])('with a key of the type %s is read', async (_name, { publicKey, privateKey }) => {
    const { chain } = intermediate.issue({ dnsNames: ['localhost'], commonName: 'leaf', publicKey });
    const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    const { files } = mount(
      { pfx: pkcs12({ chain, key }, PASSPHRASE), passphrase: PASSPHRASE },
      'pfx',
      'passphrase',
    );
    expect((await files.get()).key?.toString()).toBe(key);
    await isServed(files);
  });

  test('is read whatever follows it', async () => {
    const pfx = Buffer.concat([pkcs12(first, PASSPHRASE), Buffer.from('\n\0 and more')]);
    const { files } = mount({ pfx, passphrase: PASSPHRASE }, 'pfx', 'passphrase');
    expect((await files.get()).key?.toString()).toBe(first.key);
  });

  test('with an empty passphrase needs no file for it', async () => {
    const { files } = mount({ pfx: pkcs12(first, '') }, 'pfx');
    await isServed(files);
  });

  test('is one set with its CA bundle', async () => {
    const { files } = mount(
      { pfx: pkcs12(first, PASSPHRASE), passphrase: PASSPHRASE, ca: root.certificate },
      ...(['pfx', 'passphrase', 'ca'] as const),
    );
    const server = createServer({ requestCert: true }, (_request, response) => response.end('hello'));
    await serveTls(server, files);
    const agent = httpsAgent(files);
    onTestFinished(() => agent.destroy());
    const port = await listen(server);
    expect((await askHttps({ port, ca: undefined as never }, agent)).text).toBe('hello');
  });

  test('is replaced together with its passphrase; one without the other keeps the last good set', async () => {
    const { volume, files, events } = mount(
      { pfx: pkcs12(first, 'one'), passphrase: 'one' },
      ...(['pfx', 'passphrase'] as const),
    );
    await files.start();
    volume.publish({ pfx: pkcs12(second, 'two'), passphrase: 'one' });
    await files.check();
    expect(files.current?.key?.toString()).toBe(first.key);
    volume.publish({ pfx: pkcs12(second, 'two'), passphrase: 'two' });
    await files.check();
    expect(files.current?.key?.toString()).toBe(second.key);
    // The same key under another passphrase.
    volume.publish({ pfx: pkcs12(second, 'three', []), passphrase: 'three' });
    await files.check();
    expect(events).toEqual(['change', 'ERR_TLS_MISMATCH', 'change']);
    expect(files.status().rejected).toBeNull();
  });

  test('outside a volume waits for its passphrase, whichever is written first', async () => {
    const directory = temporaryDirectory();
    const [pfx, passphrase] = [join(directory, 'keystore.p12'), join(directory, 'passphrase')];
    const backend = new ScriptedBackend();
    const clock = new FakeClock(Date.now());
    writeFileSync(pfx, pkcs12(first, 'one'));
    writeFileSync(passphrase, 'one');
    const files = new TlsFiles({ pfx, passphrase }, { backend, clock, resyncIntervalMs: 0, settleMs: 0 });
    onTestFinished(() => files.close());
    const events = eventsOf(files);
    await files.start();
    const put = async (path: string, contents: string | Buffer): Promise<void> => {
      writeFileSync(path, contents);
      backend.hint();
      await clock.advance(150);
    };
    await put(passphrase, 'two');
    await put(pfx, pkcs12(second, 'two'));
    await put(pfx, pkcs12(first, 'three'));
    await put(passphrase, 'three');
    await clock.advance(1_000);
    expect(events).toEqual(['change', 'change', 'change']);
    await put(passphrase, 'four');
    await clock.advance(1_000);
    expect(events.at(-1)).toBe('ERR_TLS_MISMATCH');
  });

  const good = pkcs12(first, 'pass');
  test.each<[name: string, pfx: Buffer | string, says: RegExp]>([
    ['is PEM', first.chain, /it is not PKCS#12/],
    [
      'is a certificate',
      new Uint8Array(Buffer.from(root.certificate.replace(/-.+-|\n/g, ''), 'base64')) as Buffer,
      /it is not PKCS#12/,
    ],
    ['is empty', '', /it is not PKCS#12/],
    ['is cut off', good.subarray(0, 400), /it is cut off/],
    [
      'is nested as deep as a file can be',
      Buffer.alloc(1_048_576, Buffer.from([0x30, 0x80])),
      /it is not DER/,
    ],
    [
      'asks for a minute of work',
      withNumbers(pkcs12(first, 'pass', [...LEGACY, '-nomac']), ITERATIONS, [0x02, 0x03, 0xff, 0xff, 0xff]),
      /derived by 16777215 iterations; at most 100000 are made/,
    ],
  ])('that %s is rejected', async (_name, pfx, says) => {
    const { files } = mount({ pfx, passphrase: 'pass' }, 'pfx', 'passphrase');
    await files.start();
    expect(files.status().rejected?.code).toBe('ERR_TLS_PEM');
    expect(files.status().rejected?.message).toMatch(says);
  });

  test('that is damaged is rejected, whichever byte is wrong', async () => {
    const { volume, files } = mount({ pfx: good, passphrase: 'pass' }, 'pfx', 'passphrase');
    await files.start();
    await fc.assert(
      fc.asyncProperty(fc.nat(good.length - 1), fc.nat(255), async (at, byte) => {
        const pfx = Buffer.from(good);
        pfx[at] = byte;
        volume.publish({ pfx, passphrase: 'pass' });
        await files.check();
        expect(files.status().rejected?.code ?? 'ERR_TLS_').toContain('ERR_TLS_');
        expect(files.current?.key?.toString()).toBe(first.key);
        expect(files.current?.cert?.toString()).toBe(`${first.chain}${root.certificate}`);
      }),
      { numRuns: rounds(30, 1_000) },
    );
  });
});

test('a file of a package of certificates says where PKCS#12 belongs', async () => {
  const { files } = mount({ cert: pkcs12(first, ''), key: first.key }, 'cert', 'key');
  await expect(files.get()).rejects.toThrow(/PKCS#12 is given as \{ pfx, passphrase \}/);
});

test.each([
  [{ passphrase: 'a' }],
  [{ ca: 'a', passphrase: 'b' }],
  [{ pfx: 'a', cert: 'b', key: 'c' }],
  [{ pfx: 'a', bundle: 'b' }],
  [{ pfx: 'a', key: 'b' }],
])('%o are refused as paths', (given) => {
  expect(() => new TlsFiles(given)).toThrow(/cert and key, or bundle, or pfx/);
});
