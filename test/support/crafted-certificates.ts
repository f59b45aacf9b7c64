/** Certificates that no well-meaning authority issues, by the program of OpenSSL. */
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A certificate, its key, and the authorities between it and the root, PEM. */
export interface Crafted {
  readonly certificate: string;
  readonly above: string;
  readonly key: string;
}

/** The extensions of an authority, as lines of OpenSSL's configuration. */
export const AUTHORITY = ['basicConstraints=critical,CA:true', 'keyUsage=critical,keyCertSign,cRLSign'];

/** Issues a certificate with these extensions and no others; self-signed if there is no issuer. */
export function craft(extensions: readonly string[], issuer?: Crafted): Crafted {
  const directory = mkdtempSync(join(tmpdir(), 'crafted-'));
  const file = (name: string, text = ''): string => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const [key, certificate] = [file('key.pem'), file('certificate.pem')];
  const config = ['[req]', 'distinguished_name=dn', '[dn]', '[v3]', ...extensions].join('\n');
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-new', '-nodes', '-days', '1', '-subj', `/CN=${directory.slice(-6)}`],
      ...['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-keyout', key, '-out', certificate],
      ...['-config', file('openssl.cnf', config), '-extensions', 'v3'],
      ...(issuer
        ? ['-CA', file('ca.pem', issuer.certificate), '-CAkey', file('ca-key.pem', issuer.key)]
        : []),
    ],
    { stdio: 'pipe' },
  );
  const own = readFileSync(certificate, 'utf8');
  const above = issuer && issuer.above + (isRoot(issuer) ? '' : issuer.certificate);
  const crafted = { certificate: own, above: above ?? '', key: readFileSync(key, 'utf8') };
  rmSync(directory, { recursive: true });
  return crafted;
}

function isRoot({ certificate }: Crafted): boolean {
  const { subject, issuer } = new X509Certificate(certificate);
  return subject === issuer;
}
