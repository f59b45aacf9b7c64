import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** How cert-manager makes `keystore.p12` by default: RC2 with 40 bits for certificates, 3DES for the key. */
export const LEGACY: readonly string[] = ['-legacy'];

/** A PKCS#12 file of a key and certificates in PEM, by the program of OpenSSL. */
export function pkcs12(pem: string, passphrase: string, flags = LEGACY): Buffer {
  const directory = mkdtempSync(join(tmpdir(), 'pkcs12-'));
  try {
    const file = join(directory, 'all.pem');
    writeFileSync(file, pem);
    const args = ['pkcs12', '-export', '-in', file, '-passout', `pass:${passphrase}`, ...flags];
    return execFileSync('openssl', args, { input: '', stdio: ['pipe', 'pipe', 'pipe'] });
  } finally {
    rmSync(directory, { recursive: true });
  }
}
