/** Keystores as the programs of their users make them. */
import { execFileSync } from 'node:child_process';
import { createPublicKey, X509Certificate } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { CertificateSigner } from '@resilient-watcher/local-api-server';
import { describe, expect, onTestFinished, test } from 'vitest';

import { pkcs12 } from '../keystore.js';
import { TlsFiles, type TlsError } from 'resilient-watcher/tls';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

const run = (command: string, ...args: string[]): Buffer =>
  execFileSync(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });

function isInstalled(command: string, ...args: string[]): boolean {
  try {
    run(command, ...args);
    return true;
  } catch (error) {
    // One that takes no such option is there.
    return (error as NodeJS.ErrnoException).code !== 'ENOENT' && args.length === 0;
  }
}

/** What makes a keystore, from `key.pem`, `chain.pem` and `openssl.p12` in a directory. */
interface Program {
  readonly make: (at: (name: string) => string, passphrase: string) => unknown;
  /** Why its tests cannot run; undefined when they can. */
  readonly without?: string | undefined;
  /** Whether it takes other characters than ASCII in a passphrase. */
  readonly isAscii?: boolean;
}

const openssl =
  (...flags: string[]): Program['make'] =>
  (at, passphrase) => {
    const args = ['-inkey', at('key.pem'), '-in', at('chain.pem'), '-out', at('keystore')];
    run('openssl', 'pkcs12', '-export', ...args, '-passout', `pass:${passphrase}`, ...flags);
  };

const keytool =
  (...flags: string[]): Program['make'] =>
  (at, passphrase) => {
    openssl()(at, passphrase);
    writeFileSync(at('openssl.p12'), readFileSync(at('keystore')));
    run('rm', at('keystore'));
    const side = (name: string, path: string): string[] => [
      ...[`-${name}keystore`, path, `-${name}storetype`, 'PKCS12', `-${name}storepass`, passphrase],
    ];
    const args = [...side('src', at('openssl.p12')), ...side('dest', at('keystore'))];
    run('keytool', ...flags, '-importkeystore', ...args);
  };

const NSS_NAME = 'leaf';

const pk12util: Program['make'] = (at, passphrase) => {
  openssl('-name', NSS_NAME)(at, passphrase);
  mkdirSync(at('nss'));
  const database = ['-d', `sql:${at('nss')}`];
  run('certutil', '-N', ...database, '--empty-password');
  const secrets = ['-W', passphrase, '-K', ''];
  run('pk12util', '-i', at('keystore'), ...database, ...secrets);
  run('rm', at('keystore'));
  run('pk12util', '-o', at('keystore'), '-n', NSS_NAME, ...database, ...secrets);
};

const certtool: Program['make'] = (at, passphrase) => {
  const args = ['--load-privkey', at('key.pem'), '--load-certificate', at('chain.pem')];
  const out = ['--outder', '--outfile', at('keystore')];
  run('certtool', '--to-p12', ...args, '--p12-name', 'leaf', '--password', passphrase, ...out);
};

const python: Program['make'] = (at, passphrase) => {
  const script = `
import sys
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12
key, chain, keystore, passphrase = sys.argv[1:]
leaf, *issuers = x509.load_pem_x509_certificates(open(chain, 'rb').read())
lock = BestAvailableEncryption(passphrase.encode())
pem = load_pem_private_key(open(key, 'rb').read(), None)
open(keystore, 'wb').write(pkcs12.serialize_key_and_certificates(b'leaf', pem, leaf, issuers, lock))`;
  run('python3', '-c', script, at('key.pem'), at('chain.pem'), at('keystore'), passphrase);
};

const without = (isThere: boolean, name: string): string | undefined =>
  isThere ? undefined : `${name} is not installed (apt-get install ${name})`;
const javaless = without(isInstalled('keytool'), 'default-jre-headless');

const PROGRAMS: Readonly<Record<string, Program>> = {
  openssl: { make: openssl() },
  'openssl -legacy, as cert-manager by default': { make: openssl('-legacy') },
  keytool: { make: keytool(), without: javaless, isAscii: true },
  'keytool before Java 17': {
    make: keytool('-J-Dkeystore.pkcs12.legacy'),
    without: javaless,
    isAscii: true,
  },
  pk12util: { make: pk12util, without: without(isInstalled('pk12util'), 'libnss3-tools') },
  certtool: { make: certtool, without: without(isInstalled('certtool'), 'gnutls-bin') },
  Python: {
    make: python,
    without: without(isInstalled('python3', '-c', 'import cryptography'), 'python3-cryptography'),
  },
};

const root = new CertificateSigner({ name: 'root' });
const intermediate = new CertificateSigner({ name: 'intermediate', issuer: root });

const KEYS: Readonly<Record<string, string[]>> = {
  'an elliptic curve': ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256'],
  RSA: ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048'],
};

interface Made {
  readonly keystore: string;
  readonly key: string;
  readonly chain: string;
}

function made(make: Program['make'], passphrase: string, algorithm: readonly string[]): Made {
  const directory = temporaryDirectory();
  const at = (name: string): string => join(directory, name);
  run('openssl', 'genpkey', ...algorithm, '-out', at('key.pem'));
  const publicKey = createPublicKey(readFileSync(at('key.pem')));
  const { chain } = intermediate.issue({ dnsNames: ['localhost'], commonName: 'leaf', publicKey });
  writeFileSync(at('chain.pem'), chain);
  make(at, passphrase);
  return { keystore: at('keystore'), key: readFileSync(at('key.pem'), 'utf8'), chain };
}

function open(keystore: string, passphrase: string): TlsFiles {
  const path = join(temporaryDirectory(), 'passphrase');
  writeFileSync(path, `${passphrase}\n`);
  const files = new TlsFiles({ keystore, passphrase: path }, { parse: pkcs12 });
  files.on('rejected', () => {});
  onTestFinished(() => files.close());
  return files;
}

for (const [name, { make, without: reason, isAscii = false }] of Object.entries(PROGRAMS)) {
  describe.skipIf(reason)(`a keystore of ${name}${reason ? `: ${reason}` : ''}`, () => {
    const passphrases = ['a passphrase', ...(isAscii ? [] : ['pä$$ wörd €'])];
    const cases = passphrases.flatMap((passphrase) =>
      Object.keys(KEYS).map((key) => [passphrase, key] as const),
    );

    test.each(cases)('is opened with %o, with a key of %s', async (passphrase, type) => {
      const { keystore, key, chain } = made(make, passphrase, KEYS[type] ?? []);
      const credentials = await open(keystore, passphrase).get();
      expect(String(credentials.key)).toBe(key);
      // keytool and pk12util bring the certificates into an order of their own.
      expect(certificatesIn(String(credentials.cert))[0]).toBe(certificatesIn(chain)[0]);
      expect(certificatesIn(String(credentials.cert)).sort()).toEqual(certificatesIn(chain).sort());
    });

    test('is rejected with another passphrase, and when it is damaged', async () => {
      const { keystore } = made(make, 'a passphrase', KEYS['RSA'] ?? []);
      const refusalOf = async (files: TlsFiles): Promise<TlsError> => {
        const error = (await files.get().catch((thrown: unknown) => thrown)) as Error;
        return error.cause as TlsError;
      };
      expect((await refusalOf(open(keystore, 'another one'))).code).toBe('ERR_TLS_PARSE');
      const bytes = readFileSync(keystore);
      for (const damaged of [
        bytes.subarray(0, 700),
        Buffer.concat([bytes.subarray(0, 900), Buffer.alloc(900)]),
      ]) {
        writeFileSync(keystore, damaged);
        const refusal = await refusalOf(open(keystore, 'a passphrase'));
        expect(refusal.code).toMatch(/^ERR_TLS_/);
        expect(refusal.message).not.toContain('a passphrase');
      }
    });
  });
}

function certificatesIn(pem: string): string[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => new X509Certificate(block).fingerprint256);
}
