/** The signer of the testing kit, as OpenSSL sees its certificates. */
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { CertificateSigner, type CertificateKeyType } from '@resilient-watcher/local-api-server';
import { expect, test } from 'vitest';

import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

const KEY_TYPES: CertificateKeyType[] = ['RSA3072', 'ECDSAP256', 'ECDSAP384', 'ECDSAP521', 'ED25519'];

test.each(KEY_TYPES)(
  'openssl verifies a chain from a root of %s with an intermediate authority',
  (keyType) => {
    const root = new CertificateSigner({ name: 'root', keyType });
    // RSA keys take long to make; TlsFiles get one in test/tls/credential-bundle.test.ts.
    const below = keyType === 'RSA3072' ? 'ECDSAP256' : keyType;
    const issuer = new CertificateSigner({ name: 'intermediate', keyType: below, issuer: root });
    const { chain, key } = issuer.issue({
      keyType: below,
      dnsNames: ['localhost'],
      ipAddresses: ['::1', '127.0.0.1'],
    });
    const directory = temporaryDirectory();
    const file = (name: string, text: string): string => {
      writeFileSync(join(directory, name), text);
      return join(directory, name);
    };
    const leaf = file('leaf.pem', chain);
    const trusted = ['-CAfile', file('root.pem', root.certificate), '-untrusted', leaf];
    const names = [
      ['-verify_hostname', 'localhost'],
      ['-verify_ip', '::1'],
      ['-verify_ip', '127.0.0.1'],
    ];
    for (const name of names) {
      const verify = ['verify', '-x509_strict', '-purpose', 'sslserver', ...trusted, ...name, leaf];
      expect(execFileSync('openssl', verify, { encoding: 'utf8' })).toContain('OK');
    }
    expect(
      execFileSync('openssl', ['pkey', '-in', file('key.pem', key), '-pubout'], { encoding: 'utf8' }),
    ).toBe(new X509Certificate(chain).publicKey.export({ type: 'spki', format: 'pem' }));
  },
);
